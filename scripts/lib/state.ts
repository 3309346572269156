import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { removeIngress, removeSites } from "./engine-objects.ts";

/** What `npm start` remembers between runs. Written as soon as it is known, so that an interrupted set-up goes on. */
export type State = {
  ports: { git: number; responder: number; status: number; mail: number };
  secretKey: string;
  /** Earlier ones, by commas. */
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

/** A port nobody listens on now, and not one given before: whoever got that may not listen yet. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      const isNew = !given.has(port);
      given.add(port);
      server.close(() => resolve(isNew ? port : freePort()));
    });
  });

export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/** Readable by this user only, replaced as a whole. */
export function writePrivate(file: string, value: unknown): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}

export const freePorts = async (): Promise<State["ports"]> => ({
  git: await freePort(),
  responder: await freePort(),
  status: await freePort(),
  mail: await freePort(),
});

const secretsFile = (directory: string) => join(directory, "secrets.json");

/** One run at a time may use a state directory. Answers what gives it back. @throws when another run has it */
export function lockState(directory: string): () => Promise<void> {
  const file = join(directory, "start.pid");
  const holder = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (holder !== "" && isStart(holder))
    throw new Error(
      `Berth already runs on ${directory} (process ${holder}): end that, or choose another with --state-dir.`,
    );
  writeFileSync(file, String(process.pid));
  return async () => rmSync(file, { force: true });
}

function isStart(id: string): boolean {
  try {
    return readFileSync(`/proc/${Number(id)}/cmdline`, "utf8").includes("scripts/start.ts");
  } catch {
    return false;
  }
}

/** What an earlier run in this directory left, on the engine too. */
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
  // A state of an earlier version knows fewer ports.
  state.ports = { ...ports, ...state.ports };
  writePrivate(file, state);
  return { state, save: (change) => writePrivate(file, Object.assign(state, change)) };
}
