import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import fs, { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { deploySample } from "../../scripts/lib/deploy-sample.ts";
import { publishFolder } from "../../scripts/lib/publish-examples.ts";
import { freePorts, lockState, openState } from "../../scripts/lib/state.ts";
import { git } from "../support/git.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
const started: ChildProcess[] = [];
beforeEach(() => void (folder = temporaryFolder()));
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** Deploys the sample where the API answers so. */
async function sampleAt(api: (method: string) => [number, object], sampleSiteId?: string) {
  const server = http.createServer(({ method = "" }, response) => {
    const [status, body] = api(method);
    response.writeHead(status).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const siteUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { state, save } = openState(folder, await freePorts());
  if (sampleSiteId !== undefined) save({ sampleSiteId });
  const options = { state, save, siteUrl, baseUrl: `${siteUrl}/api/v1`, apiKey: "key" };
  return deploySample(options).finally(() => server.close());
}

const failed = { id: "site_1", status: "FAILED", latestDeployment: { id: "dep_1", error: "No room." } };

it.each([
  ["its key is revoked", () => [401, { error: "unauthorized" }], /answered 401/],
  [
    "it fails again",
    (method) => (method === "GET" ? [200, { ...failed, data: [] }] : [202, {}]),
    /is FAILED: No room\./,
  ],
] as [string, (method: string) => [number, object], RegExp][])(
  "a sample site of an earlier start keeps nothing from starting: %s",
  async (_, api, reason) => {
    const warned = vi.spyOn(console, "error").mockReturnValue();
    expect(await sampleAt(api, "site_1")).toBeUndefined();
    expect(warned.mock.calls).toEqual([[expect.stringMatching(reason)]]);
    expect(warned.mock.calls[0]?.[0]).toMatch(/--no-sample/);
  },
);

it("the first start fails where the sample site cannot be deployed", async () => {
  await expect(sampleAt(() => [401, { error: "unauthorized" }])).rejects.toThrow(/answered 401/);
});

const stateModule = new URL("../../scripts/lib/state.ts", import.meta.url).href;

/** A process that looks like a start's, and does this with its state directory; it is there once it has said so. */
async function another(work: string) {
  const file = join(folder, "scripts", "start.ts");
  mkdirSync(join(folder, "scripts"), { recursive: true });
  writeFileSync(
    file,
    `import { writeFileSync } from "node:fs";
    import { lockState } from ${JSON.stringify(stateModule)};
    const [directory, file] = [${JSON.stringify(folder)}, ${JSON.stringify(lockFile())}];
    ${work}
    console.log("there");
    setInterval(() => undefined, 60_000);`,
  );
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  const said = await new Promise<string>((resolve) => {
    child.stdout.once("data", () => resolve("there"));
    let errors = "";
    child.stderr.on("data", (chunk) => (errors += String(chunk)));
    child.once("close", () => resolve(errors));
  });
  return { child, said };
}
const lockFile = () => join(folder, "start.pid");
const lock = "lockState(directory);";
const lockOfAnEarlierVersion = "writeFileSync(file, String(process.pid));";

it.each([lock, lockOfAnEarlierVersion])(
  "a state directory is one start's until it has ended, also if that was killed: %s",
  async (work) => {
    const { child } = await another(work);
    expect(() => lockState(folder)).toThrow(`(process ${child.pid}): stop it`);
    child.kill("SIGKILL");
    await once(child, "exit");
    await lockState(folder)();
  },
);

it("a start that was killed in a container does not hold its state directory against the next one of its number", async () => {
  expect(await another(lockOfAnEarlierVersion + lock)).toMatchObject({ said: "there" });
});

it("a start of another state directory that has the number of a killed one does not hold that one's", async () => {
  const { child: killed } = await another(lock);
  killed.kill("SIGKILL");
  const { child: other } = await another("");
  writeFileSync(lockFile(), readFileSync(lockFile(), "utf8").replace(/^\d+/, String(other.pid)));
  await lockState(folder)();
});

const secretsFile = () => join(folder, "secrets.json");

it("the keys are written if they change only, so that a start which ends at once cannot harm them", async () => {
  const { state } = openState(folder, await freePorts());
  const { ino } = statSync(secretsFile());
  const { state: again, save } = openState(folder, await freePorts());
  expect(again).toEqual(state);
  expect(statSync(secretsFile()).ino).toBe(ino);
  // As after a copy of it was put back.
  chmodSync(secretsFile(), 0o644);
  openState(folder, await freePorts());
  expect(statSync(secretsFile()).mode & 0o777).toBe(0o600);
  save({ apiKey: "new" });
  expect(openState(folder, await freePorts()).state).toEqual({ ...state, apiKey: "new" });
});

it("the keys are replaced once the disk has the new ones, so that a power cut leaves the one or the other", async () => {
  const { save } = openState(folder, await freePorts());
  const before = readFileSync(secretsFile(), "utf8");
  vi.spyOn(fs, "fsyncSync").mockImplementation(() => {
    throw new Error("EIO: i/o error, fsync");
  });
  syncBuiltinESMExports();
  expect(() => save({ apiKey: "new" })).toThrow("EIO");
  expect(readFileSync(secretsFile(), "utf8")).toBe(before);
});

it.each([
  ["nothing is there yet", () => undefined],
  ["its repository is an empty folder", (bare) => mkdirSync(bare)],
  ["its repository has no commit", (bare) => git(folder, "init", "--bare", "--initial-branch=main", bare)],
] as [string, (bare: string) => unknown][])(
  "an example is published also where an earlier start was cut off: %s",
  async (_, cutOff) => {
    const [example, bare] = [join(folder, "hello"), join(folder, "hello.git")];
    cutOff(bare);
    mkdirSync(example);
    for (const text of ["one", "one", "two"]) {
      writeFileSync(join(example, "a.txt"), text);
      await publishFolder(example, bare);
    }
    expect(git(bare, "log", "--format=%s", "main")).toBe("Change hello\nAdd hello");
    expect(git(bare, "show", "main:a.txt")).toBe("two");
  },
);
