import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";

/** What the control plane says of the agent that it serves. */
export type Served = { version: string; sha256: string };

const maxBytes = 64 * 1024 * 1024;

const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export const isCurrent = (file: string, { sha256 }: Served): boolean =>
  sha256Of(readFileSync(file)) === sha256;

/** Replaces the agent's file by the one that is served, as a whole. @throws when it is not what was announced */
export async function replaceAgent(siteUrl: string, file: string, { sha256 }: Served): Promise<void> {
  const response = await fetch(new URL("/install/agent.mjs", siteUrl), {
    signal: AbortSignal.timeout(5 * 60_000),
  });
  if (!response.ok) throw new Error(`The new agent could not be fetched: ${response.status}`);
  if (Number(response.headers.get("Content-Length") ?? 0) > maxBytes)
    throw new Error("The new agent is too large to be one");
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (sha256Of(bytes) !== sha256)
    throw new Error("The new agent is not what was announced (SHA-256 differs)");
  const temporary = `${file}.new`;
  try {
    const handle = await open(temporary, "w", 0o644);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Called at each welcome. An agent of another version is replaced once, then `restart` lets running jobs end. */
export function updater(options: {
  siteUrl: string;
  file: string;
  restart: (version: string) => Promise<void>;
  onError: (error: unknown) => void;
}): (served: Served | undefined) => void {
  let updating = false;
  return (served) => {
    if (!served || updating || isCurrent(options.file, served)) return;
    updating = true;
    replaceAgent(options.siteUrl, options.file, served)
      .then(() => options.restart(served.version))
      .catch((error: unknown) => {
        // The next welcome tries again.
        updating = false;
        options.onError(error);
      });
  };
}
