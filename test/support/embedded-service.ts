import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { State } from "../../scripts/lib/state.ts";

const directories = (process.env["BERTH_E2E_STATE_DIRS"] ?? "").split(delimiter).filter(Boolean);

/** How many services `npm test` started; as many test files run side by side, each on a service of its own. */
export const serviceCount = directories.length;

/** The state directory of the service that this test file has for itself; undefined: there is none. */
export const stateDirectory = directories[Number(process.env["VITEST_POOL_ID"] ?? 1) - 1];

/** @returns what that service wrote into a JSON file of its state directory */
export function readState<Content>(name: string): Content {
  if (stateDirectory === undefined) throw new Error("No service was started: run these tests with npm test");
  return JSON.parse(readFileSync(join(stateDirectory, name), "utf8")) as Content;
}

/** `host:port` of its Git server. */
export const readGitHost = (): string => `127.0.0.1:${readState<State>("secrets.json").ports.git}`;
