import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";

/** What `npm start` remembers between runs. Written as soon as it is known, so that an interrupted set-up goes on. */
export type State = {
  ports: { git: number; responder: number; status: number };
  secretKey: string;
  setupToken: string;
  email: string;
  password: string;
  apiKey?: string;
  hostToken?: string;
  sampleSiteId?: string;
  sampleInvoiceToken?: string;
};

/** A port nobody listens on now. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
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

export async function openState(
  directory: string,
): Promise<{ state: State; save: (change: Partial<State>) => void }> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, "secrets.json");
  const state: State = existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as State)
    : {
        ports: { git: await freePort(), responder: await freePort(), status: await freePort() },
        secretKey: randomBytes(32).toString("base64url"),
        setupToken: randomBytes(32).toString("base64url"),
        email: "demo@berth.localhost",
        password: randomBytes(12).toString("base64url"),
      };
  writePrivate(file, state);
  return { state, save: (change) => writePrivate(file, Object.assign(state, change)) };
}
