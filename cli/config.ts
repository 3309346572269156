import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Failure, usage } from "./failure.ts";
import { besides, replaceFile } from "./files.ts";

/** One service and the account there. `token` is an API key. */
export type Profile = { url: string; token?: string; email?: string };
export type Config = { current: string; profiles: Record<string, Profile> };

type Surroundings = { platform: NodeJS.Platform; env: NodeJS.ProcessEnv; home: string };

/**
 * The file with the profiles: below `$XDG_CONFIG_HOME` or `~/.config` (XDG Base Directory Specification) on Linux and
 * macOS, as other command-line tools there do, and below `%APPDATA%` on Windows.
 */
export function configFile({ platform, env, home }: Surroundings): string {
  const xdg = env["XDG_CONFIG_HOME"];
  // The specification: a relative path is ignored.
  if (xdg?.startsWith("/")) return `${xdg}/berth/config.json`;
  if (platform !== "win32") return `${home}/.config/berth/config.json`;
  return `${env["APPDATA"] ?? `${home}\\AppData\\Roaming`}\\berth\\config.json`;
}

const noConfig: Config = { current: "default", profiles: {} };

/** @throws Failure if the file exists and cannot be read as what this program writes */
export function readConfig(file: string): Config {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return noConfig;
    throw new Failure(`${file} cannot be read: ${(error as Error).message}.`);
  }
  try {
    const { current, profiles } = JSON.parse(text) as Config;
    if (typeof current !== "string" || typeof profiles !== "object" || profiles === null) throw new Error();
    if (Object.values(profiles).some(({ url }) => typeof url !== "string")) throw new Error();
    return { current, profiles };
  } catch {
    throw new Failure(`${file} is damaged.`, { hint: "Delete it and sign in again with `berth login`." });
  }
}

/** undefined: there is none of this name, which may also be one that every object has. */
export const profileOf = ({ profiles }: Config, name: string): Profile | undefined =>
  Object.hasOwn(profiles, name) ? profiles[name] : undefined;

/** A lock is held for milliseconds: one that stays so long is of a run that crashed. */
const crashedMs = 5000;

/**
 * Changes the file as it is by then: one run at a time does. Only its owner may read it.
 * @throws Failure if the file cannot be read or written
 */
export async function changeConfig(file: string, change: (latest: Config) => Config): Promise<void> {
  const lock = `${file}.lock`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    await take(lock);
  } catch (error) {
    throw unwritable(file, error);
  }
  try {
    const next = `${JSON.stringify(change(readConfig(file)), null, 2)}\n`;
    try {
      replaceFile(file, next, 0o600);
    } catch (error) {
      throw unwritable(file, error);
    }
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** The lock is a folder, as only one run can make it. */
async function take(lock: string): Promise<void> {
  let seenMs: number | undefined;
  for (let waitedMs = 0; ; waitedMs += 20) {
    try {
      return mkdirSync(lock);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const madeMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
    if (madeMs !== seenMs) waitedMs = 0;
    else if (waitedMs > crashedMs) rmSync(lock, { recursive: true, force: true });
    seenMs = madeMs;
    await delay(20);
  }
}

/**
 * Before what would be lost if the file could not be written. It tries the folder that is there already, so that nothing is left
 * behind. @throws Failure
 */
export function requireWritable(file: string): void {
  let folder = dirname(file);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const probe = besides(join(folder, ".berth"));
  try {
    writeFileSync(probe, "", { flag: "wx" });
    rmSync(probe);
  } catch (error) {
    throw unwritable(file, error);
  }
}

const unwritable = (file: string, error: unknown): Failure =>
  new Failure(`${file} cannot be written: ${(error as Error).message}.`, {
    hint: "Set XDG_CONFIG_HOME to a folder that can be written, or BERTH_URL and BERTH_TOKEN in place of a sign-in.",
  });

/** The origin of a service as it was typed. @throws Failure (usage) if it is none */
export function siteUrlOf(typed: string): string {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(typed) ? typed : `https://${typed}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin =
    url && ["", "/", "/api/v1", "/api/v1/"].includes(url.pathname) && url.search === "" && url.hash === "";
  if (!isOrigin || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw usage(
      `${typed} is not the address of a Berth service.`,
      "Give an address such as https://berth.example.",
    );
  if (url.protocol === "http:" && !isLocal(url.hostname))
    throw usage(
      `${typed} is not encrypted: others on the network could read your key.`,
      `Give the address with https, or open a tunnel to this computer: only its own addresses may be http.`,
    );
  return url.origin;
}

/** Whether what is sent to this host never leaves the computer (RFC 6761, section 6.3). */
const isLocal = (host: string): boolean =>
  /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|.*\.localhost)$/.test(host);
