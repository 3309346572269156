import { tlsFolder, type DatabaseEngine } from "./database-engine.ts";

/**
 * In the data directory, with the database's id. Otherwise a server that initializes in an empty one would hide the
 * loss of data.
 */
export const markFile = ".berth-database";
/** In the container; while it is not empty, the server may initialize. */
export const permissionFile = `${tlsFolder}/may-begin`;
const goneLine = "Its data is gone, and no empty database starts in its place.";

/** Precedes the official image's entrypoint, because Docker restarts a crashed server without asking the agent. */
export const dataEntrypoint = ({ dataPath, dataFiles }: DatabaseEngine): string[] => [
  "sh",
  "-c",
  `for file in ${[markFile, ...dataFiles].join(" ")}; do if [ -e "${dataPath}/$file" ]; then exec "$0" "$@"; fi; done
if [ -s ${permissionFile} ]; then exec "$0" "$@"; fi
echo "${goneLine}" >&2
exit 1`,
  "docker-entrypoint.sh",
];

/** Whether the server ended for that reason. */
export const saysDataGone = (lines: readonly string[]): boolean =>
  lines.some((line) => line.includes(goneLine));
