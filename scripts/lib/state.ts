import { randomBytes, randomInt } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { holderOf, stillHolds } from "../../agent/ingress/holder.ts";
import { writeAtomically } from "../../agent/write-atomically.ts";
import { removeIngress, removeSites } from "./engine-objects.ts";

/**
 * The state that `npm start` keeps between runs. Written as soon as it changes, so that an interrupted set-up
 * resumes.
 */
export type State = {
  ports: { git: number; responder: number; status: number; mail: number };
  secretKey: string;
  /** Earlier keys, separated by commas. */
  secretKeysOld?: string;
  tokenKey?: string;
  setupToken: string;
  email: string;
  password: string;
  apiKey?: string;
  hostToken?: string;
  sampleSiteId?: string;
  sampleInvoiceToken?: string;
};

const given = new Set<number>();

/**
 * An unused port that was not returned before: whoever got that one may not be listening yet. It is below those that Linux gives to
 * connections (`ip_local_port_range`), any of which may be taken before a program listens or while it restarts, and below the
 * databases' public ones.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(11_000, 20_000);
  if (given.has(port) || !(await isFree(port))) return freePort();
  given.add(port);
  return port;
}

export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/** Readable by this user only. What has not changed is not written. */
export function writePrivate(file: string, value: unknown): void {
  const text = `${JSON.stringify(value, null, 2)}\n`;
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeAtomically(file, text);
  else chmodSync(file, 0o600);
}

export const freePorts = async (): Promise<State["ports"]> => ({
  git: await freePort(),
  responder: await freePort(),
  status: await freePort(),
  mail: await freePort(),
});

const secretsFile = (directory: string) => join(directory, "secrets.json");

/**
 * Locks a state directory, which only one run may use at a time. @returns releases the lock @throws if another run
 * holds it
 */
export function lockState(directory: string): () => Promise<void> {
  const file = join(directory, "start.pid");
  const holder = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (isHeldBy(holder))
    throw new Error(
      `Berth already runs on ${directory} (process ${Number.parseInt(holder, 10)}): stop it, or choose another with --state-dir.`,
    );
  writeFileSync(file, holderOf(process.pid) ?? String(process.pid));
  return async () => rmSync(file, { force: true });
}

/**
 * A number alone, all that an earlier version left, may be another process's by now, and in a container, where each start has the
 * same one, this process's own.
 */
function isHeldBy(holder: string): boolean {
  if (holder.includes(" ")) return stillHolds(holder);
  try {
    return (
      Number(holder) !== process.pid &&
      /(?:scripts\/start\.ts|berth\/start\.mjs)\0/.test(
        readFileSync(`/proc/${Number(holder)}/cmdline`, "utf8"),
      )
    );
  } catch {
    return false;
  }
}

/** Removes everything that an earlier run in this directory left, including on the engine. */
export async function discardState(directory: string): Promise<void> {
  if (existsSync(secretsFile(directory))) {
    const { hostToken } = JSON.parse(readFileSync(secretsFile(directory), "utf8")) as State;
    if (hostToken !== undefined) {
      await removeIngress(hostToken);
      await removeSites(hostToken);
    }
  }
  for (const entry of readdirSync(directory))
    if (!["logs", "start.pid", "dockerd.pid"].includes(entry))
      rmSync(join(directory, entry), { recursive: true, force: true });
}

export function openState(
  directory: string,
  ports: State["ports"],
): { state: State; save: (change: Partial<State>) => void } {
  const file = secretsFile(directory);
  const state: State = existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as State)
    : {
        ports,
        secretKey: randomBytes(32).toString("base64url"),
        tokenKey: randomBytes(32).toString("base64url"),
        setupToken: randomBytes(32).toString("base64url"),
        email: "demo@berth.localhost",
        password: randomBytes(12).toString("base64url"),
      };
  // A state of an earlier version has fewer ports.
  state.ports = { ...ports, ...state.ports };
  writePrivate(file, state);
  return { state, save: (change) => writePrivate(file, Object.assign(state, change)) };
}
