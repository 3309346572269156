import { tlsFolder, type DatabaseEngine } from "./database-engine.ts";

/** In the folder of a database's data: its id. A server that was set up in an empty one would hide the loss. */
export const markFile = ".berth-database";
/** In the container; while it says something, the server may set itself up. */
export const permissionFile = `${tlsFolder}/may-begin`;
const goneLine = "Its data is gone, and no empty database begins in its place.";

/** Before the official image's own: Docker starts a server that crashed by itself, and asks nobody. */
export const dataEntrypoint = ({ dataPath, dataFiles }: DatabaseEngine): string[] => [
  "sh",
  "-c",
  `for file in ${[markFile, ...dataFiles].join(" ")}; do if [ -e "${dataPath}/$file" ]; then exec "$0" "$@"; fi; done
if [ -s ${permissionFile} ]; then exec "$0" "$@"; fi
echo "${goneLine}" >&2
exit 1`,
  "docker-entrypoint.sh",
];

/** Whether that is what ended it. */
export const saysDataGone = (lines: readonly string[]): boolean =>
  lines.some((line) => line.includes(goneLine));
