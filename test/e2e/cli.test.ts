import { execFileSync, spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { load } from "js-yaml";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type * as z from "zod";
import { operations, type OperationId } from "../../protocol/api/operations.ts";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { fillSignIn, launchBrowser } from "./browser.ts";
import {
  createSite,
  local,
  pay,
  plainServer,
  serverSource,
  remove,
  Repository,
  request,
  stateDirectory,
} from "./service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The built file, as people run it: a process of its own, with a home of its own. */
const home = temporaryFolder();
const program = join(home, "berth.mjs");
const configFile = join(home, "config", "berth", "config.json");
beforeAll(() => bundleCli(program));

type Run = { code: number | null; stdout: string; stderr: string };
type Running = { child: ChildProcess; seen(pattern: RegExp): Promise<RegExpExecArray>; ended: Promise<Run> };

function start(
  args: string[],
  { cwd = home, input, env = {} }: { cwd?: string; input?: string; env?: Record<string, string> } = {},
): Running {
  const child = spawn(process.execPath, [program, ...args], {
    cwd,
    env: { PATH: process.env["PATH"], HOME: home, XDG_CONFIG_HOME: join(home, "config"), ...env },
    stdio: "pipe",
  });
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (run.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (run.stderr += part.toString()));
  child.stdin.end(input);
  const ended = new Promise<Run>((resolve) => child.once("close", (code) => resolve({ ...run, code })));
  const seen = async (pattern: RegExp) => {
    await expect.poll(() => pattern.test(run.stdout + run.stderr), { timeout: 60_000 }).toBe(true);
    return pattern.exec(run.stdout + run.stderr)!;
  };
  return { child, seen, ended };
}
const berth = (...args: string[]): Promise<Run> => start(args).ended;

/** What a command prints with --json, by the schema of the operation that it names. */
async function json<Id extends OperationId>(
  id: Id,
  ...args: string[]
): Promise<z.output<(typeof operations)[Id]["answers"][0]["schema"]>> {
  const { code, stdout, stderr } = await berth(...args, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return operations[id].answers[0].schema.parse(JSON.parse(stdout)) as never;
}

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

it("without an account, it says how to sign in, and exits with 3", async () => {
  expect(await berth("sites", "list")).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("berth login"),
  });
});

it("a person signs in with a browser, and the key is kept for the owner of the file only", async () => {
  const login = start(["login", local.siteUrl]);
  const [, address = ""] = await login.seen(/Open (\S+)/);
  const [, code] = await login.seen(/\n {4}(\S{4}-\S{4})\n/);
  const page = await browser.newPage();
  await page.goto(address);
  await fillSignIn(page, local);
  expect(await page.locator(".code").innerText()).toBe(code);
  expect(await page.locator("dl").innerText()).toContain("CLI on ");
  await page.click("button[value=approve]");
  await page.close();
  expect(await login.ended).toMatchObject({ code: 0, stdout: expect.stringContaining(local.email) });
  expect(statSync(configFile).mode & 0o777).toBe(0o600);
  expect((await json("getAccount", "whoami")).email).toBe(local.email);
});

it("a denied sign-in ends with 3 and leaves the profile as it was", async () => {
  const before = readFileSync(configFile, "utf8");
  const login = start(["login", "--no-browser"]);
  const [, address = ""] = await login.seen(/Open (\S+)/);
  const page = await browser.newPage();
  await page.goto(address);
  await fillSignIn(page, local);
  await page.click("button[value=deny]");
  await page.close();
  expect(await login.ended).toMatchObject({ code: 3, stderr: expect.stringContaining("denied") });
  expect(readFileSync(configFile, "utf8")).toBe(before);
});

it("a deployment is followed to its address, and one that fails to its reason and exit code", async () => {
  const repository = new Repository(plainServer("one"));
  const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
  await pay(invoiceToken);
  const first = await berth("deployments", "follow", "--site", siteId);
  expect(first).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^http\S+\n$/),
    stderr: expect.stringContaining("is live"),
  });

  const commit = repository.commit(
    { ...plainServer("two"), "server.js": `console.log("it is up");\n${serverSource("two")}` },
    "Two",
  );
  const deployment = await json("getDeployment", "deploy", siteId, "--quiet");
  expect(deployment).toMatchObject({ status: "LIVE", commit });
  expect((await request(first.stdout.trim())).text).toBe("version two");

  repository.commit({ Dockerfile: "FROM node:24-bookworm-slim\nRUN echo no compiler; exit 7\n" }, "Breaks");
  const failed = await berth("deploy", siteId);
  expect(failed).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/exited with code 7/) });
  expect((await request(first.stdout.trim())).text).toBe("version two");

  const listed = await json("listDeployments", "deployments", "list", siteId);
  expect(listed.data.map(({ status }) => status)).toEqual(["FAILED", "LIVE", "SUPERSEDED"]);
  const log = await berth("deployments", "logs", listed.data[0]?.id ?? "");
  expect(log.stdout).toContain("no compiler");

  const site = await json("getSite", "sites", "show", siteId);
  expect(site.status).toBe("RUNNING");
  const followed = start(["logs", site.name, "--follow", "--json"]);
  await followed.seen(/it is up/);
  expect((await json("rollbackSite", "api", "rollbackSite", `id=${siteId}`)).deploymentId).toMatch(/^dep_/);
  followed.child.kill("SIGINT");
  expect((await followed.ended).code).toBe(130);
  await remove(siteId);
});

it.each([
  ["the GitHub Action", "cli/ci/action.yml"],
  ["the GitLab template", "cli/ci/gitlab.yml"],
])(
  "the steps of %s install the program that the service offers, and deploy the commit of the pipeline",
  async (_, file) => {
    const repository = new Repository(plainServer("one"));
    const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
    await pay(invoiceToken);
    expect((await berth("deployments", "follow", "--site", siteId)).code).toBe(0);
    const commit = repository.commit(plainServer("two"), "Two");
    repository.commit(plainServer("three"), "Pushed since");
    const described = load(readFileSync(file, "utf8")) as {
      runs?: { steps: { run: string }[] };
      "berth-deploy"?: { script: string[] };
    };
    const script = described.runs?.steps.map(({ run }) => run) ?? described["berth-deploy"]?.script ?? [];
    expect(script.length).toBeGreaterThan(0);
    const env = {
      PATH: process.env["PATH"],
      HOME: home,
      BERTH_URL: local.siteUrl,
      BERTH_TOKEN: local.apiKey,
      BERTH_SITE: siteId,
      BERTH_INSTALL_DIR: mkdtempSync(join(home, "ci-")),
      REF: commit,
      CI_COMMIT_SHA: commit,
    };
    // As in CI, nobody can be asked: a question would wait for whoever started the tests.
    const stdio: StdioOptions = ["ignore", "inherit", "inherit"];
    const child = spawn("sh", ["-e", "-c", script.join("\n")], { cwd: home, env, stdio });
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0);
    const { data } = await json("listDeployments", "deployments", "list", siteId);
    expect([data[0]?.status, data[0]?.commit]).toEqual(["LIVE", commit]);
    await remove(siteId);
  },
);

it("variables are set from standard input, pulled and pushed, and secrets are never shown", async () => {
  const { siteId } = await createSite({ githubUrl: "git.invalid/owner/repo" });
  const env = (...args: string[]) => berth("env", ...args, "--site", siteId);
  const secret = await start(["env", "set", "API_KEY", "--secret", "--site", siteId], {
    input: "s3cret value\n",
  }).ended;
  expect([secret.code, secret.stdout + secret.stderr]).toEqual([0, expect.not.stringContaining("s3cret")]);
  expect((await env("set", "MODE=fast", "NAME=two words")).code).toBe(0);
  expect((await env("list")).stdout).toMatch(/API_KEY +secret[^]*MODE +fast/);
  const file = join(home, "site.env");
  expect((await env("pull", file)).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(
    '# Secrets, which Berth does not show: API_KEY\nMODE=fast\nNAME="two words"\n',
  );
  expect((await env("diff", file)).stdout).toBe("No difference.\n");
  writeFileSync(file, "MODE=slow\nNEW=1\nAPI_KEY=s3cret value\n");
  expect(await env("diff", file)).toMatchObject({
    code: 1,
    stdout: "+ NEW\n~ MODE\n? API_KEY (a secret: cannot be compared)\n- NAME\n",
  });
  expect(await env("push", file, "--prune")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--yes"),
  });
  expect((await env("push", file, "--prune", "--yes")).code).toBe(0);
  expect((await env("unset", "NEW")).code).toBe(0);
  const site = await json("getSite", "sites", "show", siteId);
  expect(Object.fromEntries(site.envVariables.map(({ key, value }) => [key, value]))).toEqual({
    API_KEY: null,
    MODE: "slow",
  });
  await berth("sites", "delete", siteId, "--yes");
});

it("files of a volume are listed, printed and copied, and what is not there or not to be had is said by exit code", async () => {
  const repository = new Repository({
    ...plainServer("one"),
    "server.js": `
const fs = require("node:fs");
fs.mkdirSync("/data/sub", { recursive: true });
fs.writeFileSync("/data/notes.txt", "grüße\\nfrom the volume\\n");
fs.writeFileSync("/data/sub/bytes", Buffer.from([0, 255, 0]));
fs.writeFileSync("/data/sub/long.txt", "a".repeat(200 * 1024));
fs.rmSync("/data/out", { force: true });
fs.symlinkSync("/etc/passwd", "/data/out");
require("node:http").createServer((_, s) => s.end("here")).listen(process.env.PORT);`,
  });
  const { siteId, invoiceToken } = await createSite({
    githubUrl: repository.address,
    volumes: [{ name: "files", mountPath: "/data" }],
  });
  await pay(invoiceToken);
  expect((await berth("deployments", "follow", "--site", siteId)).code).toBe(0);
  const volumes = (...args: string[]) => berth("volumes", ...args, "--site", siteId);

  const listed = await json("browseFiles", "volumes", "ls", "files", "--site", siteId);
  expect(listed.kind === "folder" && listed.entries.map(({ name, kind }) => [name, kind])).toEqual([
    ["notes.txt", "file"],
    ["out", "link"],
    ["sub", "folder"],
  ]);
  expect((await volumes("ls", "files", "/sub")).stdout).toMatch(
    /bytes +file +3 [^]*long\.txt +file +204800 /,
  );
  const text = "grüße\nfrom the volume\n";
  expect(await volumes("cat", "files", "notes.txt")).toEqual({ code: 0, stdout: text, stderr: "" });
  const cut = await volumes("cat", "files", "sub/long.txt");
  expect([cut.code, cut.stdout, cut.stderr]).toEqual([
    0,
    "a".repeat(128 * 1024),
    expect.stringContaining("continues"),
  ]);
  const copy = join(home, "copied.txt");
  expect((await volumes("cp", "files", "/notes.txt", copy)).code).toBe(0);
  expect(readFileSync(copy, "utf8")).toBe(text);
  for (const [code, reason, ...args] of [
    [2, "EEXIST", "cp", "files", "sub/../notes.txt", copy],
    [4, "no such file", "cat", "files", "gone.txt"],
    [4, "no such file", "cat", "files", "out"],
    [4, "no such file", "cat", "files", "../../../../etc/passwd"],
    [4, "no such volume", "ls", "others"],
    [2, "is a folder", "cat", "files", "sub"],
    [1, "not UTF-8 text", "cat", "files", "sub/bytes"],
    [1, "larger than", "cp", "files", "sub/long.txt", join(home, "long.txt")],
  ] as const) {
    const { code: ended, stdout, stderr } = await volumes(...args);
    expect([args, ended, stdout, stderr]).toEqual([args, code, "", expect.stringContaining(reason)]);
  }
  expect(readFileSync(copy, "utf8")).toBe(text);
  await remove(siteId);
});

it("Ctrl-C while following leaves the deployment running, says so, and exits with 130", async () => {
  // Still being built when the first lines are shown.
  const { Dockerfile = "", ...files } = plainServer("one");
  const repository = new Repository({
    ...files,
    Dockerfile: Dockerfile.replace("COPY", "RUN sleep 10\nCOPY"),
  });
  const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
  await pay(invoiceToken);
  const following = start(["deployments", "follow", "--site", siteId]);
  await following.seen(/│ /);
  following.child.kill("SIGINT");
  expect(await following.ended).toMatchObject({
    code: 130,
    stderr: expect.stringContaining("continues without you"),
  });
  expect((await berth("deployments", "follow", "--site", siteId)).code).toBe(0);
  await remove(siteId);
});

it.each([
  [2, ["sites", "lst"], "list"],
  [2, ["deploy", "--no-such-option"], "no-such-option"],
  [2, ["logs", local.sampleSite?.id ?? "site_1", "--since", "soon"], "is not a time"],
  [2, ["sites", "delete", "nothing", "--url", "not an address"], "not the address"],
  [3, ["whoami", "--token", "sk_nonsense"], "the key given with --token"],
  [4, ["sites", "show", "no-such-site"], "no-such-site"],
  [4, ["deployments", "show", "dep_001m80000000000000000000000"], "You have no deployment dep_"],
  [1, ["sites", "list", "--url", "http://127.0.0.1:9", "--token", "sk_x"], "cannot be reached"],
  [0, ["--help"], ""],
])("exits with %s for %j, and says why on standard error", async (code, args, text) => {
  const run = await berth(...args);
  expect([run.code, run.stderr]).toEqual([code, expect.stringContaining(text)]);
});

it("what cannot be undone needs --yes where nobody can be asked", async () => {
  const { siteId } = await createSite({ githubUrl: "git.invalid/owner/repo" });
  expect(await berth("sites", "delete", siteId)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--yes"),
  });
  const answer = await json("deleteSite", "sites", "delete", siteId, "--yes");
  expect(answer.status).toBe("DELETING");
});

it("the README shows what its commands print", async () => {
  const here = (text: string) =>
    text
      .replaceAll("http://127.0.0.1:8787", local.siteUrl)
      .replaceAll("./.berth/local.json", join(stateDirectory, "local.json"));
  const [, block = ""] =
    /## From a terminal\n[^]*?```console\n([^]*?)```/.exec(readFileSync("README.md", "utf8")) ?? [];
  const typed = block.split(/^\$ /m).slice(1);
  expect(typed.length).toBeGreaterThan(1);
  symlinkSync(program, join(home, "berth"));
  const env = {
    PATH: `${home}:${process.env["PATH"]}`,
    HOME: home,
    XDG_CONFIG_HOME: join(home, "config-of-readme"),
    BERTH_SITE: local.sampleSite.id,
  };
  for (const [command = "", ...shown] of typed.map((one) => here(one).trimEnd().split("\n")))
    expect([command, execFileSync("sh", ["-c", `${command} 2>&1`], { encoding: "utf8", env })]).toEqual([
      command,
      `${shown.join("\n")}\n`,
    ]);
  execFileSync("berth", ["env", "unset", "GREETING"], { env, stdio: "ignore" });
});

it("signing out ends the key at the service, so that nobody who has it gets in", async () => {
  const { profiles } = JSON.parse(readFileSync(configFile, "utf8")) as {
    profiles: Record<string, { token: string }>;
  };
  const token = profiles["default"]?.token ?? "";
  expect((await start(["whoami"], { env: { BERTH_TOKEN: token } }).ended).code).toBe(0);
  expect((await berth("logout")).code).toBe(0);
  expect(readFileSync(configFile, "utf8")).not.toContain("sk_");
  expect((await berth("whoami")).code).toBe(3);
  expect((await start(["whoami"], { env: { BERTH_TOKEN: token } }).ended).code).toBe(3);
});
