import { execFile, type ExecFileException } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The programs that the control plane distributes. */
type Served = { version: string; sha256: string; responderSha256: string };

const maxBytes = 64 * 1024 * 1024;

export const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const isCurrent = (file: string, sha256: string): boolean => sha256Of(readFileSync(file)) === sha256;

/** Atomically replaces a program's file by the distributed one. @throws if it is not the announced one, or an agent that cannot be loaded */
async function replace(
  siteUrl: string,
  name: "agent" | "responder",
  file: string,
  sha256: string,
): Promise<void> {
  const response = await fetch(new URL(`/install/${name}.mjs`, siteUrl), {
    signal: AbortSignal.timeout(5 * 60_000),
  });
  if (!response.ok) throw new Error(`The new ${name} could not be fetched: ${response.status}`);
  if (Number(response.headers.get("Content-Length") ?? 0) > maxBytes)
    throw new Error(`The new ${name} is too large to be one`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (sha256Of(bytes) !== sha256)
    throw new Error(`The new ${name} is not what was announced (SHA-256 differs)`);
  const temporary = file.replace(/\.mjs$/, ".new.mjs");
  try {
    const handle = await open(temporary, "w", 0o644);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (name === "agent") await load(temporary);
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

/**
 * A host whose new agent this Node cannot load would have none. The agent's check reads a file of settings once all is loaded, and this one
 * is not there. Agents of before 29 November 2026 look at the engine instead, and say what is wrong with it, if anything.
 * @throws what Node says otherwise
 */
async function load(program: string): Promise<void> {
  const missing = `${program}.env`;
  const { end, said } = await new Promise<{ end: ExecFileException | null; said: string }>((resolve) => {
    execFile(process.execPath, [program, "check", missing], { timeout: 60_000 }, (error, _stdout, stderr) =>
      resolve({ end: error, said: stderr }),
    );
  });
  const isThrown = /^Node\.js v/m.test(said);
  if (said.includes(missing) || (!end?.signal && !isThrown)) return;
  const reason =
    /^\w*Error\b.*/m.exec(said)?.[0] ?? (end?.killed ? "it did not answer within a minute" : "it crashed");
  throw new Error(
    `The new agent cannot be loaded by Node ${process.version}: ${reason}. See that the host has a current Node`,
  );
}

function problemOf(error: unknown): string {
  const { message, cause } = error as Error;
  // `fetch` has its reason in the cause.
  const reason = cause instanceof Error ? `${message}: ${cause.message}` : message;
  return `Its agent was not updated, and the earlier one runs on: ${reason.slice(0, 1000).replace(/\.$/, "")}. It tries again by itself.`;
}

const firstRetryMs = 30_000;
const maxDoublings = 7;

export type Updates = {
  /**
   * Call at each welcome. A different responder is replaced and restarts by itself; the agent is replaced once, then
   * `restart` lets running jobs end. What fails is tried again, as it was last announced: after `retryMs`, then ever later.
   */
  onWelcome: (served: Served | undefined) => void;
  /** Why the last attempt failed, for the operator; null: it did not. */
  problem: () => string | null;
};

export function openUpdates(options: {
  siteUrl: string;
  file: string;
  restart: (version: string) => Promise<void>;
  onError: (error: unknown) => void;
  retryMs?: number | undefined;
}): Updates {
  const { siteUrl, file, retryMs = firstRetryMs } = options;
  const responder = join(dirname(file), "responder.mjs");
  let announced: Served | undefined;
  let updating = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let problem: string | null = null;
  async function update({ version, sha256, responderSha256 }: Served): Promise<void> {
    // First, because the next agent's files may require the next responder.
    if (existsSync(responder) && !isCurrent(responder, responderSha256))
      await replace(siteUrl, "responder", responder, responderSha256);
    if (isCurrent(file, sha256)) return;
    await replace(siteUrl, "agent", file, sha256);
    problem = null;
    await options.restart(version);
  }
  function attempt(): void {
    if (!announced || updating) return;
    updating = true;
    update(announced)
      .then(() => (problem = null))
      .catch((error: unknown) => {
        options.onError(error);
        problem = problemOf(error);
        timer = setTimeout(attempt, retryMs * 2 ** Math.min(failures++, maxDoublings)).unref();
      })
      .finally(() => (updating = false));
  }
  return {
    onWelcome(served) {
      clearTimeout(timer);
      [announced, failures] = [served, 0];
      attempt();
    },
    problem: () => problem,
  };
}
