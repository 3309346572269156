import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { load } from "js-yaml";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answers } from "../../protocol/cli.ts";
import { version } from "../../cli/version.ts";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { answeringService, answerOf, type Asked, type Service } from "../support/answering-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Some tests start a dozen processes, each of which takes seconds on a machine that does other things as well.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
/** The built file, as a process of its own. */
const home = temporaryFolder();
const program = join(home, "berth.mjs");
const site = "site_001m80000000000000000000000";
const database = "db_001m80000000000000000000000";
const deployment = "dep_001m80000000000000000000000";
const newer = Buffer.from("#!/usr/bin/env node\nconsole.log('9.9.9');\n");
let service: Service;
/** The answer to every request, in place of what the operation answers. */
let refuse: { status: number; body: object; headers?: Record<string, string> } | undefined;

beforeAll(async () => {
  await bundleCli(program);
  service = await answeringService(
    {
      getDeployment: { status: "QUEUED", finishedAt: null },
      getDatabaseCredentials: { connectionString: "postgresql://ada:secret@10.0.0.7:5432/shop" },
    },
    {
      "/install/cli.json": Buffer.from(
        JSON.stringify({ version: "9.9.9", sha256: createHash("sha256").update(newer).digest("hex") }),
      ),
      "/install/berth.mjs": newer,
      "/install/berth.1": Buffer.from("the manual"),
    },
  );
  service.refusal = () => refuse;
});
afterAll(() => service.close());

type Run = { code: number | null; stdout: string; stderr: string };
function start(
  args: string[],
  env: Record<string, string> = {},
  file = program,
  input: string | null = "",
  cwd = home,
) {
  return watched(process.execPath, [file, ...args], env, input, cwd);
}
/** In a terminal of its own, whose output is all on standard output. */
const inTerminal = (args: string[], env: Record<string, string> = {}, cwd = home) =>
  watched(
    "script",
    [
      "--quiet",
      "--flush",
      "--return",
      "--command",
      [process.execPath, program, ...args].join(" "),
      "/dev/null",
    ],
    { TERM: "xterm-256color", ...env },
    null,
    cwd,
  );
function watched(
  name: string,
  args: string[],
  env: Record<string, string>,
  input: string | null,
  cwd: string,
) {
  const child = spawn(name, args, {
    cwd,
    env: {
      PATH: process.env["PATH"],
      GIT_CEILING_DIRECTORIES: tmpdir(),
      HOME: home,
      BERTH_URL: service.url,
      BERTH_TOKEN: "sk_test",
      BERTH_SITE: site,
      ...env,
    },
    stdio: "pipe",
  });
  if (input !== null) child.stdin.end(input);
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (run.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (run.stderr += part.toString()));
  const ended = new Promise<Run>((resolve) => child.once("close", (code) => resolve({ ...run, code })));
  return { child, run, ended };
}
const berth = (...args: string[]): Promise<Run> => start(args).ended;
const seen = (started: ReturnType<typeof start>, text: string) =>
  expect.poll(() => started.run.stdout + started.run.stderr, { timeout: 45_000 }).toContain(text);

it.each([
  [0, undefined, ["sites", "list"]],
  [1, { status: 500, body: { error: "server_error", requestId: "r1" } }, ["sites", "list"]],
  [2, { status: 400, body: { error: "invalid_request", issues: [] } }, ["sites", "list"]],
  [2, undefined, ["sites", "lst"]],
  [3, { status: 401, body: { error: "unauthorized" } }, ["sites", "list"]],
  [4, { status: 404, body: { error: "Not found" } }, ["sites", "list"]],
  [5, { status: 403, body: { error: "forbidden" } }, ["sites", "list"]],
  [5, { status: 409, body: { error: "conflict", reason: "It is deployed already." } }, ["sites", "start"]],
  [7, { status: 402, body: { error: "payment_required", invoiceToken: "inv_1" } }, ["deploy", "--no-wait"]],
  [
    6,
    { status: 429, body: { error: "rate_limited" }, headers: { "Retry-After": "3600" } },
    ["sites", "list"],
  ],
] as const)("exits with %s where the service answers %j", async (code, answer, args) => {
  refuse = answer;
  const run = await berth(...args, "--json");
  refuse = undefined;
  expect(run.code).toBe(code);
  if (code === 0) return;
  const { error } = JSON.parse(run.stderr) as { error: { code: string; message: string; hint: string } };
  expect([run.stdout, error.message, error.hint]).toEqual(["", expect.any(String), expect.any(String)]);
  if (code === 7) expect(error.hint).toContain(`${service.url}/invoice/inv_1`);
  if (code === 6) expect(error.hint).toBe("Try again in 60 minutes.");
  expect(error.message.length).toBeGreaterThan(10);
});

it.each([
  ["whose connection breaks each time", () => (service.cut = ({ method }) => method !== "GET")],
  [
    "that is still in progress after it was cut off",
    () => {
      let asked = 0;
      service.cut = ({ method }) => method !== "GET" && asked++ === 0;
      refuse = { status: 409, body: { error: "conflict", reason: "It is still in progress." } };
      service.refusal = ({ method }) => (method === "GET" ? undefined : refuse);
    },
  ],
])("a change %s may be carried out, which is said with how to look", async (_, begin) => {
  begin();
  const { code, stderr } = await berth("sites", "start");
  service.cut = () => false;
  refuse = undefined;
  service.refusal = () => refuse;
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/may have carried out the request[^]*berth activity/);
  expect(stderr).not.toMatch(/nothing was changed|cannot be reached/i);
});

it.each([
  { status: 400, body: { error: "invalid_request", issues: [{ path: "statement", message: "it failed" }] } },
  { status: 409, body: { error: "conflict", reason: "The database's server did not answer." } },
])("does not say that nothing was changed where a statement failed: $status", async (answer) => {
  refuse = answer;
  const run = await berth("databases", "query", database, "CALL moved()", "--write");
  refuse = undefined;
  expect(run.stderr).toMatch(/it failed|did not answer/);
  expect(run.stderr).not.toMatch(/nothing was changed/i);
});

it.each([
  ["stdout", ["sites", "list"]],
  ["stderr", ["sites", "lst"]],
] as const)("whose reader of %s has gone has exit code 141, never 0", async (stream, args) => {
  const { child, ended } = start([...args]);
  child[stream].destroy();
  expect((await ended).code).toBe(141);
});

it.each([
  ["to confirm", ["sites", "delete", site], "Type yes to continue: "],
  ["for a secret", ["env", "set", "TOKEN"], "(not shown): "],
  ["in the assistant", ["chat"], "> "],
])("Ctrl-C where one is asked %s ends the command with 130", async (_where, args, question) => {
  const asking = inTerminal(args);
  await seen(asking, question);
  asking.child.stdin.write("\u0003");
  const { code, stdout } = await asking.ended;
  expect([code, stdout]).toEqual([130, expect.not.stringContaining("Aborted")]);
});

it("credits that are missing are told by number, with where to get them", async () => {
  refuse = { status: 402, body: { error: "payment_required", balance: 2, needed: 5 } };
  const run = await berth("chat", "hello");
  refuse = undefined;
  expect(run).toMatchObject({
    code: 7,
    stderr: expect.stringMatching(/costs 5 credits, and you have 2[^]*credits buy/),
  });
  // As well where they are gone when the message, which waited for another, has its turn.
  const { instead } = service;
  service.instead = () => ({ error: "payment_required", balance: 2, needed: 5 });
  const waited = await berth("chat", "hello");
  service.instead = instead;
  expect([waited.code, waited.stderr]).toEqual([run.code, run.stderr]);
});

it.each([
  ["goes on from what was streamed", ["It ", "is"], "It is this: s3cret", "It is this: s3cret\n"],
  ["is printed whole below another text", ["Half of"], "It failed.\nAgain?", "Half of\nIt failed.\nAgain?\n"],
])("the assistant's answer %s, so that nothing of it is lost", async (_, deltas, message, printed) => {
  const { instead } = service;
  service.instead = () => ({ deltas, message, pendingAction: null });
  const { stdout } = await berth("chat", "hello");
  service.instead = instead;
  expect(stdout).toBe(printed);
});

it("the assistant's answer that is cut off is found where the CLI says", async () => {
  const { instead } = service;
  service.instead = () => ({ deltas: ["Half"], isCut: true });
  const { code, stdout, stderr } = await berth("chat", "hello");
  service.instead = instead;
  expect([code, stdout]).toEqual([1, "Half"]);
  expect(stderr).toContain("berth conversations show conv_001m80000000000000000000000");
});

it.each([
  [2, "usage", ["sites", "show"], { BERTH_SITE: "" }],
  [3, "unauthorized", ["sites", "list"], { BERTH_TOKEN: "" }],
  [2, "usage", ["sites"], {}],
  [4, "not_found", ["sites", "show", "no-such-site"], {}],
])(
  "where no service refuses, exit code %s has the name %s in JSON as well",
  async (code, name, args, env) => {
    const run = await start([...args, "--json"], env).ended;
    expect([run.code, JSON.parse(run.stderr)]).toMatchObject([code, { error: { code: name } }]);
  },
);

it("what there is not is told as the service names it, without a remark on sites", async () => {
  refuse = { status: 404, body: { error: "Not found", reason: "The server has no session 17." } };
  const run = await berth("databases", "end-session", "db_001m80000000000000000000000", "17", "--yes");
  refuse = undefined;
  expect([run.code, run.stderr]).toEqual([4, "✗ The server has no session 17.\n"]);
});

it("a rate limit is waited out as long as Retry-After says, and said", async () => {
  let asked = 0;
  const before = performance.now();
  service.refusal = () =>
    asked++ === 0
      ? { status: 429, body: { error: "rate_limited" }, headers: { "Retry-After": "2" } }
      : undefined;
  const run = await berth("whoami");
  service.refusal = () => refuse;
  expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining("asks to wait") });
  expect(performance.now() - before).toBeGreaterThan(2000);
});

it.each([
  ["watch", ["watch", "--json"], "change"],
  ["a followed deployment", ["deploy"], "Deployment #"],
  ["a followed log", ["logs", "--follow"], "text"],
])("Ctrl-C ends %s with 130", async (_, args, text) => {
  const started = start([...args]);
  await seen(started, text === "change" ? '"type"' : text);
  started.child.kill("SIGINT");
  const run = await started.ended;
  expect(run.code).toBe(130);
  if (text === "change") answers.change.parse(JSON.parse(run.stdout.split("\n")[0] ?? ""));
});

it("a followed log of one replica, or with a text, begins with as many such lines as were asked for", async () => {
  const line = (seq: number, replica: number) => ({
    seq,
    at: `2026-11-23T12:00:00.00000000${seq}Z`,
    stream: "stdout",
    replica,
    text: `line ${seq} of ${replica}`,
  });
  const before = [line(1, 1), line(2, 1), line(3, 2), line(4, 2)];
  service.instead = ({ id, url }) =>
    id === "getSiteLogs" ? { data: url.includes("follow=1") ? [line(5, 2), line(6, 1)] : before } : undefined;
  for (const filter of [
    ["--replica", "1"],
    ["--search", "OF 1"],
  ]) {
    const from = service.asked.length;
    const started = start(["logs", "-f", "-n", "1", ...filter]);
    await seen(started, "line 6");
    started.child.kill("SIGINT");
    expect((await started.ended).stdout.match(/line \d/g)).toEqual(["line 2", "line 6"]);
    const [read, followed] = service.asked.slice(from).filter(({ id }) => id === "getSiteLogs");
    expect(read?.url).toContain("tail=1000");
    expect(decodeURIComponent(followed?.url ?? "")).toContain(`since=${before.at(-1)?.at}`);
  }
  service.instead = () => undefined;
});

it("a first deploy creates the site of berth.json; who cannot pay at a terminal gets the address to pay at, and 7", async () => {
  const checkout = mkdtempSync(join(home, "checkout-"));
  writeFileSync(
    join(checkout, "berth.json"),
    JSON.stringify({ name: "new-shop", source: { repository: "github.com/acme/shop" } }),
  );
  let isPaid = false;
  service.instead = ({ id }) =>
    id === "getSite"
      ? { status: "PENDING", latestDeployment: isPaid ? { id: deployment } : null }
      : id === "getDeployment" && isPaid
        ? { status: "LIVE", error: null }
        : id === "createSite"
          ? { siteId: site, invoiceToken: "inv_first" }
          : undefined;
  const from = service.asked.length;
  const scripted = await start(["deploy", "--json"], { BERTH_SITE: "" }, program, "", checkout).ended;
  const pay = `${service.url}/invoice/inv_first`;
  expect([scripted.code, scripted.stdout]).toEqual([7, ""]);
  expect(JSON.parse(scripted.stderr.trim().split("\n").at(-1) ?? "")).toMatchObject({
    error: { hint: expect.stringContaining(pay) },
  });
  const created = service.asked.slice(from).filter(({ id }) => id === "createSite");
  expect(created.map(({ body }) => JSON.parse(body) as object)).toMatchObject([{ name: "new-shop" }]);

  const typed = inTerminal(["deploy"], { BERTH_SITE: "" }, checkout);
  await seen(typed, "Waiting for the payment");
  expect(typed.run.stdout).toContain(pay);
  isPaid = true;
  const run = await typed.ended;
  expect([run.code, run.stdout]).toEqual([0, expect.stringContaining("is live")]);
  // The payment deploys it: a request for another deployment would be a second one.
  expect(service.asked.slice(from).filter(({ id }) => id === "patchSite")).toEqual([]);

  isPaid = false;
  refuse = { status: 402, body: { error: "payment_required", invoiceToken: "inv_open" } };
  service.refusal = ({ id }) => (id === "patchSite" ? refuse : undefined);
  const later = inTerminal(["deploy"]);
  await seen(later, "Waiting for the payment");
  expect(later.run.stdout).toContain(`${service.url}/invoice/inv_open`);
  isPaid = true;
  expect((await later.ended).code).toBe(0);
  refuse = undefined;
  service.instead = () => undefined;
  service.refusal = () => refuse;
});

it("a first deploy of a site with databases names their invoices before its own, whose payment deploys it", async () => {
  const checkout = projectFolder({
    source: { repository: "github.com/acme/shop" },
    databases: [{ name: "shop-data", type: "postgresql" }],
  });
  service.instead = ({ id }) =>
    id === "createSite"
      ? { siteId: site, invoiceToken: "inv_site" }
      : id === "createDatabase"
        ? { databaseId: "db_001m80000000000000000000000", invoiceToken: "inv_data" }
        : id === "listSites"
          ? { data: [] }
          : undefined;
  const deployed = () => start(["deploy"], { BERTH_SITE: "" }, program, "", checkout).ended;
  const [data, own] = ["inv_data", "inv_site"].map((token) => `${service.url}/invoice/${token}`);
  const { code, stderr } = await deployed();
  expect([code, stderr.match(/Pay to start .*/g)]).toEqual([
    7,
    [`Pay to start shop-data: ${data}`, `Pay to start shop: ${own}`],
  ]);
  expect(stderr).toContain(`Pay in this order: ${data}, ${own};`);
  // Whatever ends the run, what it has made can be paid.
  service.refusal = ({ id }) =>
    id === "createDatabase" ? { status: 409, body: { error: "conflict", reason: "Taken." } } : undefined;
  expect((await deployed()).stderr).toContain(`Pay to start shop: ${own}`);
  service.refusal = () => refuse;
  service.instead = () => undefined;
});

it("deploy says if the commit in service is not that of the checkout, unless --ref names what to deploy", async () => {
  const checkout = mkdtempSync(join(home, "checkout-"));
  const git = (...args: string[]) => execFileSync("git", args, { cwd: checkout, encoding: "utf8" }).trim();
  git("init", "--quiet");
  git("remote", "add", "origin", "git@github.com:acme/shop.git");
  git(
    "-c",
    "user.name=Ada",
    "-c",
    "user.email=ada@example.com",
    "commit",
    "--quiet",
    "--allow-empty",
    "-m",
    "1",
  );
  const commit = "0123456789".repeat(4);
  let githubUrl = "github.com/acme/shop";
  service.instead = ({ id }) =>
    id === "getSite"
      ? { deployType: "github", githubUrl, status: "RUNNING" }
      : id === "getDeployment"
        ? { status: "LIVE", error: null, commit }
        : undefined;
  const deployed = async (...args: string[]) => {
    const from = service.asked.length;
    const { code, stderr } = await start(["deploy", ...args], {}, program, "", checkout).ended;
    expect(code).toBe(0);
    const asked = service.asked.slice(from).find(({ id }) => id === "patchSite");
    return { stderr, body: JSON.parse(asked?.body ?? "") as object };
  };
  expect(await deployed()).toEqual({
    stderr: expect.stringContaining(
      `This is commit 01234567; your checkout is at ${git("rev-parse", "HEAD").slice(0, 8)}.`,
    ),
    body: { action: "deploy" },
  });
  expect(await deployed("--ref", commit)).toEqual({
    stderr: expect.not.stringContaining("your checkout"),
    body: { action: "deploy", ref: commit },
  });
  githubUrl = "github.com/acme/another";
  expect((await deployed()).stderr).not.toContain("your checkout");
  service.instead = () => undefined;
});

it.each([
  ["git@work:acme/shop.git", "hostname github.com", "github.com/acme/shop.git"],
  ["ssh://git@github.com-work/acme/shop.git", "hostname github.com", "github.com/acme/shop.git"],
  ["git@gitserver:acme/shop.git", "hostname gitserver", "gitserver/acme/shop.git"],
  ["git@work:acme/shop.git", "", "work/acme/shop.git"],
  // SSH may reach a server by another name than its pages have.
  ["git@github.com:acme/shop.git", "hostname ssh.github.com", "github.com/acme/shop.git"],
  ["https://work/acme/shop.git", "hostname github.com", "work/acme/shop.git"],
])("the remote %s is read from where SSH goes (%s): %s", async (remote, configured, address) => {
  const checkout = mkdtempSync(join(home, "checkout-"));
  const bin = mkdtempSync(join(home, "ssh-"));
  const named = '[ "$1 $2" = "-G --" ] || exit 1';
  writeFileSync(join(bin, "ssh"), `#!/bin/sh\n${named}\necho user git\necho ${configured}\n`, {
    mode: 0o755,
  });
  execFileSync("git", ["init", "--quiet", checkout]);
  execFileSync("git", ["-C", checkout, "remote", "add", "origin", remote]);
  const from = service.asked.length;
  const env = { BERTH_SITE: "", PATH: `${bin}:${process.env["PATH"]}` };
  expect((await start(["init"], env, program, "", checkout).ended).code).toBe(0);
  const asked = service.asked.slice(from).find(({ id }) => id === "inspectSource");
  expect(JSON.parse(asked?.body ?? "")).toMatchObject({ githubUrl: address });
});

it("deploy --ref of a site that is not paid for says so at once: its payment would deploy the branch", async () => {
  refuse = { status: 402, body: { error: "payment_required", invoiceToken: "inv_open" } };
  service.instead = ({ id }) =>
    id === "getSite" ? { status: "PENDING", latestDeployment: null } : undefined;
  service.refusal = ({ id }) => (id === "patchSite" ? refuse : undefined);
  const { code, stdout } = await inTerminal(["deploy", "--ref", "v2"]).ended;
  expect([code, stdout]).toEqual([7, expect.not.stringContaining("Waiting")]);
  refuse = undefined;
  service.instead = () => undefined;
  service.refusal = () => refuse;
});

it("databases tunnel prints where it listens as its schema says, and Ctrl-C ends it with 130", async () => {
  const started = start(["databases", "tunnel", "db_001m80000000000000000000000", "--json", "--quiet"]);
  await seen(started, "}");
  started.child.kill("SIGINT");
  const run = await started.ended;
  expect([run.code, run.stderr]).toEqual([130, ""]);
  answers.tunnel.parse(JSON.parse(run.stdout));
});

it("a dump for psql stops at its first error, which a person at a terminal would see", async () => {
  const bin = mkdtempSync(join(home, "psql-"));
  writeFileSync(join(bin, "psql"), '#!/bin/sh\necho "$@"\nexit 3\n', { mode: 0o755 });
  service.instead = ({ id }) => (id === "getDatabase" ? { type: "postgresql" } : undefined);
  const args = ["databases", "connect", database];
  const env = { PATH: `${bin}:${process.env["PATH"]}` };
  const imported = await start([...args, "--", "--set=ON_ERROR_STOP=0"], env, program, "SELECT 1;\n").ended;
  // The last one counts for psql: who wants to go on after errors can.
  expect(imported).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/--set=ON_ERROR_STOP=1.* --set=ON_ERROR_STOP=0\n$/),
  });
  const typed = await inTerminal(args, env).ended;
  expect([typed.code, typed.stdout]).toEqual([3, expect.stringContaining("--username=")]);
  expect(typed.stdout).not.toContain("ON_ERROR_STOP");
  service.instead = () => undefined;
});

it("ingress protect reads the password from standard input, and never prints it", async () => {
  const from = service.asked.length;
  const run = await start(["ingress", "protect", "ada", "--json"], {}, program, "a long password\n").ended;
  expect([run.code, service.asked.at(-1)?.body]).toEqual([0, expect.stringContaining('"a long password"')]);
  expect(service.asked.length).toBeGreaterThan(from);
  expect(run.stdout + run.stderr).not.toContain("a long password");
});

it("hosts create reads the token of a machine that was a host before from standard input", async () => {
  const token = `hst_0${"a".repeat(43)}`;
  const create = (input: string) =>
    start(["hosts", "create", "fra-1", "--with-token", "--json"], {}, program, input).ended;
  expect((await create(`${token}\n`)).code).toBe(0);
  expect(JSON.parse(service.asked.at(-1)?.body ?? "")).toEqual({ name: "fra-1", token });
  expect((await create("")).code).toBe(2);
});

/** exec in a shell whose line has `berth` where the program goes. */
const execLine = (line: string) => {
  writeFileSync(join(home, "dump.sql"), "SELECT 1;\nSELECT 2;\n");
  const command = `${process.execPath} ${program} exec -- cat`;
  return watched("sh", ["-c", line.replaceAll("berth", command)], {}, null, home).ended;
};

it("exec refuses a file, which the command would not get, before it runs anything", async () => {
  const from = service.asked.length;
  expect(await execLine("berth < dump.sql")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("berth databases connect"),
  });
  expect(service.asked.slice(from)).toEqual([]);
});

it("exec says that the command does not get what is piped to it", async () => {
  service.instead = ({ id }) => (id === "getCommand" ? { status: "SUCCEEDED", error: null } : undefined);
  const piped = await execLine("cat dump.sql | berth");
  expect(piped).toMatchObject({ code: 0, stderr: expect.stringContaining("passes no input") });
  service.instead = () => undefined;
});

it.each([
  ["a loop over a file's lines", "while read -r one; do berth; done < dump.sql"],
  ["a loop over a pipe's lines", "cat dump.sql | while read -r one; do berth; done"],
  ["a script that comes through a pipe", "printf 'berth\nberth\n' | bash -s"],
  ["a file that was read to its end", "{ cat; berth; berth; } < dump.sql"],
])("exec runs, and reads nothing of what is for others: %s", async (_, line) => {
  service.instead = ({ id }) => (id === "getCommand" ? { status: "SUCCEEDED", error: null } : undefined);
  const from = service.asked.length;
  expect((await execLine(line)).code).toBe(0);
  expect(service.asked.slice(from).filter(({ id }) => id === "runCommand")).toHaveLength(2);
  service.instead = () => undefined;
});

it.each([
  ["/dev/null", () => execLine("berth < /dev/null")],
  ["a closed one", () => execLine("berth <&-")],
  ["an empty pipe", () => execLine(": | berth")],
  ["a pipe that stays open, as in CI", () => start(["exec", "--", "cat"], {}, program, null).ended],
  ["a terminal", () => inTerminal(["exec", "--", "cat"]).ended],
])("exec runs where standard input is %s", async (_, ran) => {
  service.instead = ({ id }) => (id === "getCommand" ? { status: "SUCCEEDED", error: null } : undefined);
  expect((await ran()).code).toBe(0);
  service.instead = () => undefined;
});

it("Ctrl-C at any moment of exec leaves a command that was asked for cancelled, or none asked for", async () => {
  const deployed: Asked[] = service.asked;
  for (const afterMs of [20, 60, 90, 120, 150, 200, 300, 500]) {
    const from = deployed.length;
    const started = start(["exec", "--", "true"]);
    const timer = setTimeout(() => started.child.kill("SIGINT"), afterMs);
    const { code } = await started.ended;
    clearTimeout(timer);
    const ids = deployed.slice(from).map(({ id }) => id);
    if (code === 130 && ids.includes("runCommand") && !ids.includes("getCommand"))
      expect(ids).toContain("cancelCommand");
    // null: the signal came before the program listened.
    expect([130, 0, 1, null]).toContain(code);
  }
});

/** A folder with this berth.json; the account has the site shop, and what else is given. */
function projectFolder(file: object): string {
  const checkout = mkdtempSync(join(home, "checkout-"));
  writeFileSync(join(checkout, "berth.json"), JSON.stringify({ name: "shop", ...file }));
  const [listed] = (answerOf("listSites").value as { data: object[] }).data;
  const staging = { ...listed, id: "site_001m80000000000000000000001", name: "shop-staging" };
  const own = { ...listed, id: site, name: "shop", domains: [], envVariables: [] };
  service.instead = ({ id }) => (id === "listSites" ? { data: [staging, own] } : undefined);
  return checkout;
}
const changesSince = (from: number) => service.asked.slice(from).filter(({ method }) => method !== "GET");

it("Ctrl-C at any moment of up ends with 130, and what was asked for is the beginning of what up asks for", async () => {
  const variables = Object.fromEntries(Array.from({ length: 450 }, (_, at) => [`VARIABLE_${at}`, "1"]));
  const domains = ["a.example.org", "b.example.org", "c.example.org"];
  const checkout = projectFolder({ variables, domains });
  const changes = async (afterMs: number) => {
    const from = service.asked.length;
    const started = start(["up"], {}, program, "", checkout);
    const timer = setTimeout(() => started.child.kill("SIGINT"), afterMs);
    const { code } = await started.ended;
    clearTimeout(timer);
    return { code, made: changesSince(from).map(({ id, body }) => [id, body]) };
  };
  const whole = await changes(60_000);
  expect([whole.code, whole.made.map(([id]) => id)]).toEqual([
    0,
    [...Array.from({ length: 3 }, () => "patchSite"), ...domains.map(() => "createDomain")],
  ]);
  for (let afterMs = 40; afterMs <= 400; afterMs += 30) {
    const { code, made } = await changes(afterMs);
    expect(made).toEqual(whole.made.slice(0, made.length));
    // null: the signal came before the program listened, or while Node took it down after its last step. 0: after that.
    expect([0, 130, null]).toContain(code);
    if (code === 0) expect(made).toEqual(whole.made);
    if (code === null) expect([0, whole.made.length]).toContain(made.length);
  }
  service.instead = () => undefined;
});

it("diff says what is wrong in berth.json in words that need no knowledge of the schema", async () => {
  const checkout = projectFolder({ settings: { port: "x" }, domains: "shop.example.org" });
  const { code, stderr } = await start(["diff"], {}, program, "", checkout).ended;
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("settings.port: must be a number; domains: must be a list."),
  ]);
  service.instead = () => undefined;
});

it.each([
  ["--site", ["--site", "shop-staging"], ""],
  ["--site, with an id", ["--site", "site_001m80000000000000000000001"], site],
  ["--site, with what there is not", ["--site", "shop-stagign"], ""],
  ["BERTH_SITE", [], "shop-staging"],
])("up and diff refuse another site than that of berth.json: %s", async (_, args, BERTH_SITE) => {
  const checkout = projectFolder({ variables: { GREETING: "hello" } });
  const from = service.asked.length;
  for (const name of ["up", "diff"]) {
    const run = await start([name, ...args], { BERTH_SITE }, program, "", checkout).ended;
    expect(run).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(
        /(--site|BERTH_SITE) is (shop-sta|site_)\S+, .* berth\.json is about shop\./,
      ),
    });
  }
  expect(changesSince(from)).toEqual([]);
  service.instead = () => undefined;
});

it.each([
  ["its name, before BERTH_SITE", ["--site", "shop"], "shop-staging"],
  ["its id", ["--site", site], ""],
  ["BERTH_SITE", [], "shop"],
])("up changes the site of berth.json where it is chosen by %s", async (_, args, BERTH_SITE) => {
  const checkout = projectFolder({ variables: { GREETING: "hello" } });
  const from = service.asked.length;
  const run = await start(["up", ...args], { BERTH_SITE }, program, "", checkout).ended;
  expect([run.code, changesSince(from).map(({ url }) => url)]).toEqual([0, [`/api/v1/sites/${site}`]]);
  service.instead = () => undefined;
});

it.each([
  [2, { status: 400, body: { error: "invalid_request", issues: [] } }, "Correct this"],
  [5, { status: 409, body: { error: "conflict", reason: "It is another site's." } }, ""],
  [7, { status: 402, body: { error: "payment_required", invoiceToken: "inv_1" } }, "/invoice/inv_1"],
  [1, { status: 500, body: { error: "server_error", requestId: "r1" } }, "r1"],
])(
  "up that is refused half-way, with %s, says that the steps before are done, and how to take the rest",
  async (code, answer, text) => {
    const checkout = projectFolder({ variables: { GREETING: "hello" }, domains: ["a.example.org"] });
    const refusedAt = async (operation: string) => {
      service.refusal = ({ id }) => (id === operation ? answer : undefined);
      const run = await start(["up", "--json"], {}, program, "", checkout).ended;
      service.refusal = () => refuse;
      const { error } = JSON.parse(run.stderr.trim().split("\n").at(-1) ?? "") as { error: { hint: string } };
      expect([run.code, error.hint]).toEqual([code, expect.stringContaining(text)]);
      return error.hint;
    };
    const halfWay = await refusedAt("createDomain");
    expect(halfWay).toMatch(/previous steps are done.*`berth up` again/);
    expect(halfWay).not.toMatch(/nothing was changed/i);
    expect(await refusedAt("patchSite")).not.toContain("previous steps");
    service.instead = () => undefined;
  },
);

it.each([
  [
    "as DATABASE_URL",
    [
      { name: "shop-data", type: "postgresql" },
      { name: "shop-more", type: "mysql" },
    ],
  ],
  [
    "of the name shop-data",
    [
      { name: "shop-data", type: "redis" },
      { name: "shop-data", type: "redis", variable: "CACHE_URL" },
    ],
  ],
])("two databases %s in berth.json are refused before anything is made", async (text, databases) => {
  const checkout = projectFolder({ source: { image: "nginx" }, databases });
  const from = service.asked.length;
  for (const name of ["diff", "up", "deploy"]) {
    service.instead = ({ id }) => (id === "listSites" ? { data: [] } : undefined);
    const { code, stderr } = await start([name], { BERTH_SITE: "" }, program, "", checkout).ended;
    expect([name, code, stderr]).toEqual([name, 2, expect.stringContaining(`two databases ${text}`)]);
  }
  expect(changesSince(from)).toEqual([]);
  service.instead = () => undefined;
});

it("up finds a database that is linked as another variable or is of another type before it changes anything, and says what to write", async () => {
  const checkout = projectFolder({
    variables: { GREETING: "hello" },
    databases: [{ name: "shop-data", type: "postgresql" }],
  });
  const [listed] = (answerOf("listDatabases").value as { data: object[] }).data;
  const data = {
    ...listed,
    name: "shop-data",
    links: [{ siteId: site, variable: "PG_URL", inService: true }],
  };
  const sites = service.instead;
  service.instead = (asked) => (asked.id === "listDatabases" ? { data: [data] } : sites(asked));
  const from = service.asked.length;
  const run = await start(["up"], {}, program, "", checkout).ended;
  expect([run.code, changesSince(from)]).toEqual([2, []]);
  expect(run.stderr).toContain("has the database shop-data as PG_URL");
  expect(run.stderr).toContain('"variable": "PG_URL"');
  writeFileSync(
    join(checkout, "berth.json"),
    JSON.stringify({
      name: "shop",
      databases: [{ name: "shop-data", type: "postgresql", variable: "PG_URL" }],
    }),
  );
  expect(await start(["up"], {}, program, "", checkout).ended).toMatchObject({
    code: 0,
    stdout: "No difference.\n",
  });
  writeFileSync(
    join(checkout, "berth.json"),
    JSON.stringify({
      name: "shop",
      variables: { GREETING: "hello" },
      databases: [{ name: "shop-data", type: "redis" }],
    }),
  );
  const before = service.asked.length;
  const mistaken = await start(["up"], {}, program, "", checkout).ended;
  expect([mistaken.code, changesSince(before)]).toEqual([2, []]);
  expect(mistaken.stderr).toContain("shop-data is postgresql, and berth.json says redis");
  service.instead = () => undefined;
});

it.each([
  [
    "that nobody approved",
    { status: 200, body: { status: "pending" } },
    1,
    "Nobody approved the code in time",
  ],
  ["that expired at the service", { status: 404, body: { error: "Not found" } }, 1, "The code has expired"],
  [
    "that was denied or has expired",
    { status: 404, body: { error: "Not found" } },
    600,
    "denied in the browser",
  ],
])("a code %s ends the sign-in with 3, and keeps no key", async (_, polled, expires_in, text) => {
  service.instead = ({ id }) => (id === "startDevice" ? { interval: 1, expires_in } : undefined);
  service.refusal = ({ id }) => (id === "pollDevice" ? polled : undefined);
  const config = mkdtempSync(join(home, "config-"));
  const run = await start(["login", "--no-browser"], { XDG_CONFIG_HOME: config, BERTH_TOKEN: "" }).ended;
  service.instead = () => undefined;
  service.refusal = () => refuse;
  expect(run).toMatchObject({ code: 3, stdout: "", stderr: expect.stringContaining(text) });
  expect(readdirSync(config)).toEqual([]);
});

it("where the key could not be kept, a sign-in asks for no code; where that is found too late, it revokes the key", async () => {
  const from = service.asked.length;
  const login = (place: string) =>
    start(["login", "--no-browser"], { XDG_CONFIG_HOME: place, BERTH_TOKEN: "" });
  expect(await login("/proc/berth").ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/\/proc\/berth\/berth\/config\.json cannot be written[^]*XDG_CONFIG_HOME/),
  });
  expect(service.asked.slice(from)).toEqual([]);

  const config = mkdtempSync(join(home, "config-"));
  service.instead = ({ id }) =>
    id === "startDevice"
      ? { interval: 1 }
      : id === "pollDevice"
        ? { status: "approved", token: "sk_new" }
        : undefined;
  const late = login(config);
  await seen(late, "check that it shows this code");
  writeFileSync(join(config, "berth"), "no folder");
  expect(await late.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be written") });
  service.instead = () => undefined;
  expect(service.asked.at(-1)).toMatchObject({
    id: "revokeOwnKey",
    headers: { authorization: "Bearer sk_new" },
  });
});

it("sign-ins at the same time keep every profile", async () => {
  const place = mkdtempSync(join(home, "config-"));
  const names = ["a", "b", "c", "d", "e", "f"];
  const runs = names.map(
    (name) =>
      start(
        ["login", "--with-token", "--profile", name, service.url],
        { XDG_CONFIG_HOME: place },
        program,
        "sk_1",
      ).ended,
  );
  expect((await Promise.all(runs)).map(({ code }) => code)).toEqual(names.map(() => 0));
  const file = join(place, "berth", "config.json");
  const { profiles } = JSON.parse(readFileSync(file, "utf8")) as { profiles: object };
  expect(Object.keys(profiles).toSorted()).toEqual(names);
});

it("the page where keys are revoked is the dashboard's, for `berth keys` and who has signed in", async () => {
  service.instead = ({ id }) =>
    id === "startDevice"
      ? { interval: 1 }
      : id === "pollDevice"
        ? { status: "approved", token: "sk_test" }
        : undefined;
  const env = { XDG_CONFIG_HOME: mkdtempSync(join(home, "config-")), BERTH_TOKEN: "" };
  const signedIn = await start(["login", "--no-browser"], env).ended;
  service.instead = () => undefined;
  const page = `${service.url}/account/keys`;
  expect(signedIn).toMatchObject({ code: 0, stdout: expect.stringContaining(`revoke it at ${page}.`) });
  expect(JSON.parse((await berth("keys", "--json")).stdout)).toEqual({ url: page });
});

it.each([
  ["You have no job cmd_1.", "berth jobs list", ["jobs", "show", "cmd_1"]],
  ["You have no domain a.example.", "berth domains list", ["domains", "verify", "a.example"]],
  ["There is no such thing in your account.", "Check the id", ["rollback", "dep_1"]],
])("where there is none, it says %s", async (text, hint, args) => {
  refuse = { status: 404, body: { error: "Not found" } };
  const run = await berth(...args);
  refuse = undefined;
  expect([run.code, run.stderr]).toEqual([4, expect.stringMatching(new RegExp(`${text}[^]*${hint}`))]);
});

it("a variable that there is not is not removed, and an empty standard input is no value", async () => {
  const from = service.asked.length;
  expect(await berth("env", "unset", "NO_SUCH_NAME")).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("no variable NO_SUCH_NAME"),
  });
  expect(await berth("env", "set", "SECRET")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("berth env set SECRET="),
  });
  expect(service.asked.slice(from).filter(({ method }) => method !== "GET")).toEqual([]);
});

it("a .env file is read and written as the pages do, and one with a line that is no variable is refused with its number", async () => {
  const values = {
    PW: "ab#cd12",
    JSON: '{"a":1}',
    KEY: "-----BEGIN-----\nabc\n-----END-----",
    QUOTES: "\"'`#",
  };
  const file = join(home, "values.env");
  service.instead = ({ id }) =>
    id === "getSite"
      ? {
          envVariables: Object.entries(values).map(([key, value]) => ({
            key,
            value,
            encrypted: false,
            scope: "both",
          })),
        }
      : undefined;
  writeFileSync(
    file,
    'PW=ab#cd12\nJSON="{\\"a\\":1}"\nKEY="-----BEGIN-----\nabc\n-----END-----"\nQUOTES="\\"\'`#"\n',
  );
  expect(await berth("env", "diff", file)).toMatchObject({ code: 0, stdout: "No difference.\n" });
  // Replaced as a whole, so that a crash leaves the old one or the new one; also behind a link, and with its mode.
  const [link, before] = [join(home, "link.env"), join(home, "before.env")];
  symlinkSync(file, link);
  linkSync(file, before);
  chmodSync(file, 0o640);
  expect(await berth("env", "pull", link, "--force")).toMatchObject({ code: 0, stderr: "" });
  expect(readlinkSync(link)).toBe(file);
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(statSync(file).ino).not.toBe(statSync(before).ino);
  expect(await berth("env", "diff", file)).toMatchObject({ code: 0, stdout: "No difference.\n" });

  const from = service.asked.length;
  writeFileSync(file, 'PW=1\nNOTAVAR\nOPEN="never closed\n');
  for (const verb of ["diff", "push"]) {
    const { code, stderr } = await berth("env", verb, file);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/line 2: [^]*line 3: [^]*OPEN/)]);
  }
  expect(service.asked.slice(from)).toEqual([]);
  service.instead = () => undefined;
});

const latin1 = Buffer.from("A=1\nNAME=Zo\u00eb\nB=2\n", "latin1");
const utf16 = Buffer.from("\ufeffNAME=fast\n", "utf16le");
it.each([
  ["Latin-1", latin1, 2],
  ["UTF-16", utf16, 1],
  ["UTF-16 without a byte order mark", utf16.subarray(2), 1],
])(
  "what is %s, and would be stored as another text, is refused by its line before anything is asked for",
  async (_, bytes, line) => {
    const checkout = mkdtempSync(join(home, "checkout-"));
    for (const name of ["some.env", "berth.json"]) writeFileSync(join(checkout, name), bytes);
    const from = service.asked.length;
    for (const [args, named] of [
      [["env", "push", "some.env"], "some.env"],
      [["env", "diff", "some.env"], "some.env"],
      [["env", "set", "NAME"], "Standard input"],
      [["up"], "berth.json"],
    ] as const) {
      const started = start([...args], {}, program, null, checkout);
      started.child.stdin.end(bytes);
      const { code, stderr } = await started.ended;
      expect([args, code, stderr]).toEqual([
        args,
        2,
        expect.stringMatching(
          new RegExp(`${named} is not UTF-8 text: see line ${line}\\.[^]*Save it as UTF-8`),
        ),
      ]);
    }
    expect(service.asked.slice(from)).toEqual([]);
  },
);

it("a byte order mark before UTF-8 is no part of a value, of a name or of berth.json", async () => {
  const checkout = projectFolder({ variables: { NAME: "Zoë" } });
  const file = join(checkout, "berth.json");
  const marked = (text: string) => Buffer.from(`\ufeff${text}`);
  writeFileSync(file, marked(readFileSync(file, "utf8")));
  writeFileSync(join(checkout, "some.env"), marked("NAME=Zoë\n"));
  const sites = service.instead;
  service.instead = (asked) => (asked.id === "getSite" ? { envVariables: [] } : sites(asked));
  for (const args of [["env", "set", "NAME"], ["env", "push", "some.env"], ["up"]]) {
    const from = service.asked.length;
    const started = start(args, {}, program, null, checkout);
    started.child.stdin.end(marked("Zoë\n"));
    expect([args, (await started.ended).code]).toEqual([args, 0]);
    const [change] = changesSince(from);
    expect(JSON.parse(change?.body ?? "")).toMatchObject({ envVariables: [{ key: "NAME", value: "Zoë" }] });
  }
  service.instead = () => undefined;
});

describe("a download", () => {
  const backup = Buffer.alloc(300_000, "b");
  const path = "/backups/bak_1/download";
  /** The first answers in order, each as slowly as told: a piece, and the rest once `released`. */
  async function slowService(headers: Record<string, string> = {}) {
    const asked: http.ServerResponse[] = [];
    const server = http.createServer((request, response) => {
      if (request.url === path) {
        response
          .writeHead(200, { "Content-Length": backup.length, ...headers })
          .write(backup.subarray(0, 1000));
        asked.push(response);
      } else
        response
          .writeHead(200, { "Content-Type": "application/json" })
          .end(JSON.stringify({ url: `${url}${path}`, status: "STORED" }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { url, asked, close: () => void server.close() };
  }
  const download = (url: string, cwd: string, ...args: string[]) =>
    start(["backups", "download", "bak_1", "some.backup", ...args], { BERTH_URL: url }, program, "", cwd);
  /** Once its first piece is on the disk. */
  const begun = (cwd: string, count: number) =>
    expect
      .poll(() => readdirSync(cwd).filter((name) => statSync(join(cwd, name)).size === 1000).length, {
        timeout: 45_000,
      })
      .toBe(count);

  it("into a file that another one is writing leaves a whole file of one of them, and nothing else", async () => {
    const { url, asked, close } = await slowService();
    const cwd = mkdtempSync(join(home, "downloads-"));
    const first = download(url, cwd);
    await begun(cwd, 1);
    const second = download(url, cwd);
    await begun(cwd, 2);
    asked[1]?.end(backup.subarray(1000));
    expect(await second.ended).toMatchObject({ code: 0 });
    asked[0]?.end(backup.subarray(1000));
    expect(await first.ended).toMatchObject({ code: 2, stderr: expect.stringContaining("already exists") });
    expect(readdirSync(cwd)).toEqual(["some.backup"]);
    expect(readFileSync(join(cwd, "some.backup")).equals(backup)).toBe(true);
    close();
  });

  it.each([
    ["shop-2026-11-30T0308Z.sql.gz", "shop-2026-11-30T0308Z.sql.gz"],
    ["../../.profile", "bak_1.backup"],
  ])("is named as the service names it, %s, unless that is no plain name", async (sent, written) => {
    const { url, asked, close } = await slowService({
      "Content-Disposition": `attachment; filename="${sent}"`,
    });
    const cwd = mkdtempSync(join(home, "downloads-"));
    const run = start(["backups", "download", "bak_1"], { BERTH_URL: url }, program, "", cwd);
    await begun(cwd, 1);
    asked[0]?.end(backup.subarray(1000));
    expect(await run.ended).toMatchObject({ code: 0, stdout: `Wrote ${written}.\n` });
    expect(readdirSync(cwd)).toEqual([written]);
    close();
  });

  it("that is cut off leaves the file that there was, and says so", async () => {
    const { url, asked, close } = await slowService();
    const cwd = mkdtempSync(join(home, "downloads-"));
    writeFileSync(join(cwd, "some.backup"), "of before");
    const run = download(url, cwd, "--force");
    await begun(cwd, 1);
    asked[0]?.destroy();
    expect(await run.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("was cut off") });
    expect(readdirSync(cwd)).toEqual(["some.backup"]);
    expect(readFileSync(join(cwd, "some.backup"), "utf8")).toBe("of before");
    close();
  });
});

it("secrets, which a pulled file does not have, are no difference, and no push removes them", async () => {
  const file = join(home, "secrets.env");
  const envVariables = [
    { key: "API_KEY", value: null, encrypted: true, scope: "both" },
    { key: "MODE", value: "fast", encrypted: false, scope: "both" },
  ];
  service.instead = ({ id }) => (id === "getSite" ? { envVariables } : undefined);
  expect(await berth("env", "pull", file)).toMatchObject({ code: 0 });
  for (const options of [[], ["--json"]])
    expect(await berth("env", "pull", "-", ...options)).toMatchObject({
      code: 0,
      stdout: readFileSync(file, "utf8"),
      stderr: expect.stringContaining("because they are secret: API_KEY") as string,
    });
  const from = service.asked.length;
  expect(await berth("env", "diff", file)).toMatchObject({ code: 0, stdout: "No difference.\n" });
  expect(await berth("env", "push", file, "--prune", "--yes")).toMatchObject({
    code: 0,
    stdout: "No difference.\n",
  });
  expect(service.asked.slice(from).map(({ id }) => id)).toEqual(["getSite", "getSite"]);
  service.instead = () => undefined;
});

it("a push of which the service refuses a later part says what is done, and how to see the rest", async () => {
  const file = join(home, "many.env");
  const keys = Array.from({ length: 250 }, (_, at) => `KEY_${at}`);
  writeFileSync(file, keys.map((key) => `${key}=1\n`).join(""));
  const envVariables = [{ key: "OLD", value: "1", encrypted: false, scope: "both" }];
  service.instead = ({ id }) => (id === "getSite" ? { envVariables } : undefined);
  const refusedFrom = async (part: number) => {
    let asked = 0;
    service.refusal = ({ id }) =>
      id === "patchSite" && ++asked >= part
        ? { status: 409, body: { error: "conflict", reason: "Too many variables." } }
        : undefined;
    const run = await berth("env", "push", file, "--prune", "--yes", "--json");
    service.refusal = () => refuse;
    const { error } = JSON.parse(run.stderr.trim().split("\n").at(-1) ?? "") as {
      error: { message: string; hint: string };
    };
    expect([run.code, error.message]).toEqual([5, "Too many variables."]);
    return error.hint;
  };
  const hint = await refusedFrom(2);
  expect(hint).toMatch(
    /200 variables, KEY_0 to KEY_199, are changed\. .* other 51, from KEY_200 on, failed.*berth env list/,
  );
  expect(hint).not.toMatch(/nothing was changed/i);
  expect(await refusedFrom(1)).toBe("Nothing was changed.");
  service.instead = () => undefined;
});

it("several lines at the hidden prompt are refused, whose first alone would be stored", async () => {
  const from = service.asked.length;
  const asking = inTerminal(["env", "set", "KEY"]);
  await seen(asking, "(not shown): ");
  asking.child.stdin.write("-----BEGIN-----\rabc\r-----END-----\r");
  const { code, stdout } = await asking.ended;
  expect([code, stdout]).toEqual([2, expect.stringContaining("berth env set KEY < file")]);
  expect(service.asked.slice(from)).toEqual([]);
});

it("field.inner=value keeps what else is within that field, and null takes a part of it away", async () => {
  const pack = (answerOf("listAllPacks").value as { data: object[] }).data[0];
  const terms = [1, 3, 6, 12, 24].map((months) => ({ months, discountPercent: months, amountCents: 900 }));
  service.instead = ({ id, body }) =>
    id === "getSite" || body.includes("settings")
      ? {
          healthCheck: { kind: "tcp", intervalSeconds: 60 },
          lifecycle: { drainSeconds: 20, stopSignal: "SIGINT" },
          ingress: { headers: { Foo: "1", Bar: "2" }, hsts: null, maintenance: null },
        }
      : id === "listAllPacks"
        ? { data: [{ ...pack, id: "pack_1", terms }] }
        : undefined;
  for (const [args, sent] of [
    [
      ["sites", "set", "healthCheck.failures=7", "lifecycle.stopSignal=null", "ingress.headers.Foo=3"],
      {
        settings: {
          healthCheck: { kind: "tcp", intervalSeconds: 60, failures: 7 },
          lifecycle: { drainSeconds: 20 },
          ingress: { headers: { Foo: "3", Bar: "2" } },
        },
      },
    ],
    [["sites", "set", 'healthCheck={"kind":"http"}'], { settings: { healthCheck: { kind: "http" } } }],
    [
      ["ingress", "set", "headers.X-Frame-Options=DENY", "headers.Bar=null", "hsts.maxAgeSeconds=60"],
      {
        settings: {
          ingress: { headers: { Foo: "1", "X-Frame-Options": "DENY" }, hsts: { maxAgeSeconds: 60 } },
        },
      },
    ],
    [
      ["packs", "set", "pack_1", "discounts.12=10", "discounts.24=null", "amountCents=900"],
      { discounts: { 1: 1, 3: 3, 6: 6, 12: 10 }, amountCents: 900 },
    ],
    [["packs", "set", "pack_1", "active=false"], { active: false }],
  ] as const) {
    expect(await berth(...args)).toMatchObject({ code: 0 });
    const change = service.asked.findLast(({ method }) => method === "PATCH");
    expect(JSON.parse(change?.body ?? "")).toEqual(sent);
  }
  expect(await berth("packs", "set", "pack_2", "discounts.12=10")).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("no pack pack_2"),
  });
  service.instead = () => undefined;
});

it("a command that needs an address or a term that exists says which option gives it", async () => {
  for (const [args, text] of [
    [["notifications", "add", "webhook", "crash_loop"], "--to"],
    [["notifications", "add", "fax", "crash_loop"], "mail, webhook or slack"],
    [["databases", "create", "main", "redis", "--months", "5"], "1, 3, 6, 12 or 24"],
    [["env", "push", "nofile"], "There is no file nofile."],
  ] as const)
    expect(await berth(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(text) });
});

it("what contradicts itself or cannot be is refused with 2, and an invoice that is void is not to be paid", async () => {
  for (const [args, text] of [
    [["schedules", "set", "sch_1", "--enable", "--disable"], "--enable or --disable"],
    [["databases", "tunnel", "db_1", "--port", "99999"], "65535"],
  ] as const)
    expect(await berth(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(text) });
  service.instead = ({ id }) => (id === "getInvoice" ? { status: "void" } : undefined);
  const { code, stderr } = await berth("invoices", "wait", "inv_1");
  service.instead = () => undefined;
  expect([code, stderr]).toEqual([7, expect.stringContaining("is void")]);
  expect(stderr).not.toContain("Pay it");
  refuse = { status: 404, body: { error: "Not found" } };
  const missing = await berth("sites", "list", "--json");
  refuse = undefined;
  expect(JSON.parse(missing.stderr)).not.toHaveProperty("error.details");
});

it("help fits a terminal of 80 columns", async () => {
  for (const args of [["--help"], ["deploy", "--help"], ["databases", "--help"]]) {
    const { stdout } = await berth(...args);
    expect(stdout.split("\n").filter(({ length }) => length > 80)).toEqual([]);
  }
});

it("help before a command shows that command's help, as in other programs", async () => {
  expect(await berth("help", "sites", "list")).toEqual(await berth("sites", "list", "--help"));
  expect(await berth("help")).toEqual(await berth("--help"));
});

it("a command that stands below a noun is suggested with it", async () => {
  const { code, stderr } = await berth("restart");
  expect([code, stderr]).toEqual([
    2,
    "✗ Unknown command 'restart'.\n  Did you mean berth sites restart, berth databases restart?\n",
  ]);
  expect((await berth("site", "list")).stderr).toContain("Did you mean sites?");
  expect((await berth("sites", "lst")).stderr).toContain("Did you mean list?");
});

it("in CI a terminal is none: nothing is asked, and no line moves", async () => {
  const asking = inTerminal(["sites", "delete", site]);
  await seen(asking, "Type yes to continue: ");
  asking.child.kill("SIGINT");
  await asking.ended;
  for (const CI of ["1", "true"]) {
    const refused = await inTerminal(["sites", "delete", site], { CI }).ended;
    expect([refused.code, refused.stdout]).toEqual([2, expect.stringContaining("--yes")]);
  }
  const following = inTerminal(["deploy"], { CI: "1" });
  await seen(following, "Deployment #");
  following.child.kill("SIGTERM");
  expect((await following.ended).stdout).not.toContain("\u001b[2K");
});

it("a clock that is hours off changes nothing but what doctor says", async () => {
  service.date = new Date(Date.now() + 5 * 3_600_000).toUTCString();
  const runs = [
    await berth("sites", "list", "--json"),
    await berth("deployments", "show", deployment, "--json"),
  ];
  service.date = undefined;
  expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual([
    [0, ""],
    [0, ""],
  ]);
});

it("an answer that a service of another version gives and a command cannot show is told with how to get the program of that version", async () => {
  const { data } = answerOf("listHosts").value as { data: object[] };
  const { instead } = service;
  // Hosts had no problems before 29 November 2026.
  const hosts = data.map((host) => ({ ...host, connected: true, problems: undefined }));
  service.instead = (asked) => (asked.id === "listHosts" ? { data: hosts } : instead(asked));
  const { code, stderr } = await berth("hosts", "list");
  service.instead = instead;
  expect([code, stderr]).toEqual([1, expect.stringMatching(/cannot be shown[^]*berth upgrade/)]);
});

it("a revoked key is told as such, and a network that is away as such", async () => {
  refuse = { status: 401, body: { error: "unauthorized" } };
  expect(await berth("sites", "list")).toMatchObject({ code: 3, stderr: expect.stringContaining("revoked") });
  refuse = undefined;
  const away = await start(["sites", "list"], { BERTH_URL: "http://127.0.0.1:9" }).ended;
  expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be reached") });
});

it.each([
  ["BERTH_TOKEN", [], /key in BERTH_TOKEN[^]*Set BERTH_TOKEN to a valid key/],
  ["--token", ["--token", "sk_other"], /key given with --token/],
  ["the profile", ["--profile", "work"], /key of the profile work[^]*berth login --profile work/],
  ["the default profile", [], /key of the profile work[^]*berth login`/],
])("a key that is rejected is named by where it comes from: %s", async (place, args, text) => {
  const config = mkdtempSync(join(home, "config-"));
  mkdirSync(join(config, "berth"));
  const profiles = { work: { url: service.url, token: "sk_kept" } };
  writeFileSync(join(config, "berth", "config.json"), JSON.stringify({ current: "work", profiles }));
  const env = { XDG_CONFIG_HOME: config, ...(place === "the default profile" && { BERTH_TOKEN: "" }) };
  refuse = { status: 401, body: { error: "unauthorized" } };
  const { code, stderr } = await start(["sites", "list", ...args], env).ended;
  refuse = undefined;
  expect([code, stderr]).toEqual([3, expect.stringMatching(text)]);
  if (!text.source.includes("berth login")) expect(stderr).not.toContain("berth login");
});

it("a key that a sign-in brings and the service rejects is told as that key, not as BERTH_TOKEN's", async () => {
  refuse = { status: 401, body: { error: "unauthorized" } };
  const env = { XDG_CONFIG_HOME: mkdtempSync(join(home, "config-")) };
  const { code, stderr } = await start(["login", "--with-token"], env, program, "sk_typed\n").ended;
  refuse = undefined;
  expect([code, stderr]).toEqual([3, expect.not.stringContaining("BERTH_TOKEN")]);
  expect(stderr).toContain("does not accept this key");
});

it("doctor says that the clock is wrong, and exits with 1", async () => {
  service.date = new Date(Date.now() - 3_600_000).toUTCString();
  const run = await berth("doctor");
  service.date = undefined;
  expect(run).toMatchObject({ code: 1, stdout: expect.stringMatching(/✗ clock.*1 h ahead/) });
  expect((await berth("doctor")).stdout).toMatch(/✓ clock/);
});

it("upgrade replaces the file and its man page by what the service offers, and a damaged download changes nothing", async () => {
  const own = join(home, "installed", "bin", "berth.mjs");
  const manPages = join(home, "installed", "share", "man", "man1");
  mkdirSync(join(home, "installed", "bin"), { recursive: true });
  mkdirSync(manPages, { recursive: true });
  copyFileSync(program, own);
  writeFileSync(join(manPages, "berth.1"), "of before");
  const damaged = { ...service.files };
  service.files["/install/berth.mjs"] = Buffer.from("console.log('other')");
  const refused = await start(["upgrade"], {}, own).ended;
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("damaged") });
  expect(readFileSync(own)).toEqual(readFileSync(program));
  Object.assign(service.files, damaged);
  const run = await start(["upgrade", "--json"], {}, own).ended;
  expect(run.code).toBe(0);
  answers.upgraded.parse(JSON.parse(run.stdout));
  expect(readdirSync(join(home, "installed", "bin"))).toEqual(["berth.mjs"]);
  expect(readdirSync(manPages)).toEqual(["berth.1"]);
  expect(readFileSync(join(manPages, "berth.1"), "utf8")).toBe("the manual");
  expect((await start([], {}, own).ended).stdout).toBe("9.9.9\n");

  copyFileSync(program, own);
  const offered = { ...service.files };
  delete service.files["/install/berth.1"];
  const without = await start(["upgrade"], {}, own).ended;
  service.files = offered;
  expect(without).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Upgraded from"),
    stderr: expect.stringContaining("Its man page could not be replaced"),
  });
  expect(readFileSync(own)).toEqual(newer);
  expect(readFileSync(join(manPages, "berth.1"), "utf8")).toBe("the manual");
});

it("upgrade says whether it replaced the program, of which several have one version", async () => {
  const own = join(home, "another-build", "berth.mjs");
  mkdirSync(join(home, "another-build"));
  const [bytes, offered] = [readFileSync(program), { ...service.files }];
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  Object.assign(service.files, {
    "/install/cli.json": Buffer.from(JSON.stringify({ version, sha256 })),
    "/install/berth.mjs": bytes,
  });
  writeFileSync(own, Buffer.concat([bytes, Buffer.from("\n// Of before.\n")]));
  const first = await start(["upgrade"], {}, own).ended;
  const second = await start(["upgrade"], {}, own).ended;
  service.files = offered;
  expect([first.stdout, second.stdout]).toEqual([
    `Upgraded from ${version} to another build of ${version}.\n`,
    `${version} is the current version.\n`,
  ]);
  expect(readFileSync(own)).toEqual(bytes);
});

/** The line for a shell of a template for CI. */
const templates = {
  "action.yml": (file: unknown) => {
    const { inputs, runs } = file as {
      inputs: { ref: { default: string } };
      runs: { steps: [{ run: string }] };
    };
    expect(inputs.ref.default).toBe("${{ github.sha }}");
    return runs.steps[0].run;
  },
  "gitlab.yml": (file: unknown) =>
    (file as { "berth-deploy": { script: string[] } })["berth-deploy"].script.join("\n"),
};
it.each([
  [
    "GitHub Action",
    "a repository at the pipeline's commit",
    "action.yml",
    "",
    "0123abc",
    "deploy --ref 0123abc\n",
  ],
  ["GitHub Action", "an image, which has no commits", "action.yml", "", "", "deploy\n"],
  ["GitHub Action", "a service whose address ends with /", "action.yml", "/", "", "deploy\n"],
  [
    "GitLab template",
    "a service whose address ends with /",
    "gitlab.yml",
    "/",
    "0123abc",
    "deploy --ref 0123abc\n",
  ],
] as const)("the %s deploys a site from %s", async (_, _what, name, ending, commit, asked) => {
  const line = templates[name](load(readFileSync(join(import.meta.dirname, "../../cli/ci", name), "utf8")));
  service.files["/install/cli"] = Buffer.from(
    `printf '#!/bin/sh\\necho "$@"\\n' > "$BERTH_INSTALL_DIR/berth"; chmod 755 "$BERTH_INSTALL_DIR/berth"`,
  );
  const env = {
    BERTH_URL: service.url + ending,
    BERTH_INSTALL_DIR: mkdtempSync(join(home, "action-")),
    REF: commit,
    CI_COMMIT_SHA: commit,
  };
  const run = await watched("sh", ["-e", "-c", line], env, "", home).ended;
  expect(run).toMatchObject({ code: 0, stdout: asked });
});

it("the installer refuses a Node.js that the program does not run on, and fails where the program does not start", async () => {
  const [bin, folder] = [join(home, "bin"), join(home, "by-installer", "bin")];
  mkdirSync(bin);
  const install = async (nodeVersion: string, file: Buffer) => {
    writeFileSync(
      join(bin, "node"),
      `#!/bin/sh\nexec ${process.execPath} --require ${join(bin, "version.cjs")} "$@"\n`,
      { mode: 0o755 },
    );
    writeFileSync(
      join(bin, "version.cjs"),
      `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${nodeVersion}" } });`,
    );
    service.files["/install/berth.mjs"] = file;
    const script = readFileSync(join(import.meta.dirname, "../../scripts/install-cli.sh"), "utf8")
      .replaceAll("@SITE_URL@", service.url)
      .replaceAll("@CLI_SHA256@", createHash("sha256").update(file).digest("hex"));
    const env = { BERTH_INSTALL_DIR: folder, PATH: `${bin}:${process.env["PATH"]}` };
    return watched("sh", ["-c", script], env, "", home).ended;
  };
  for (const old of ["18.20.0", "20.12.2"])
    expect(await install(old, newer)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("Node.js 20.13 or newer is needed"),
    });
  const broken = await install("20.13.0", Buffer.from("import { none } from 'node:util';\n"));
  expect([broken.code, broken.stdout, broken.stderr]).toEqual([
    1,
    "",
    expect.stringContaining(`${folder}/berth does not start`),
  ]);
  for (const good of ["20.13.0", "22.0.0"])
    expect(await install(good, newer)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Installed ${folder}/berth 9.9.9`),
    });
  expect(readFileSync(join(home, "by-installer/share/man/man1/berth.1"), "utf8")).toBe("the manual");
  service.files["/install/berth.mjs"] = newer;
});

it("signing out ends the key at the service; where it cannot, it is forgotten here and said", async () => {
  const config = join(home, "config", "berth");
  const file = join(config, "config.json");
  mkdirSync(config, { recursive: true });
  const write = (url: string) =>
    writeFileSync(
      file,
      JSON.stringify({ current: "default", profiles: { default: { url, token: "sk_kept" } } }),
    );
  const out = (...args: string[]) =>
    start(["logout", "--json", ...args], {
      XDG_CONFIG_HOME: join(home, "config"),
      BERTH_URL: "",
      BERTH_TOKEN: "",
    }).ended;
  write(service.url);
  const from = service.asked.length;
  const run = await out();
  expect([run.code, JSON.parse(run.stdout)]).toEqual([
    0,
    { url: service.url, profile: "default", revoked: true },
  ]);
  expect(service.asked.slice(from).map(({ id, headers }) => [id, headers.authorization])).toEqual([
    ["revokeOwnKey", "Bearer sk_kept"],
  ]);
  expect(readFileSync(file, "utf8")).not.toContain("sk_kept");
  refuse = { status: 500, body: { error: "server_error" } };
  write(service.url);
  const failed = await out();
  refuse = undefined;
  expect([failed.code, JSON.parse(failed.stdout)]).toEqual([1, expect.objectContaining({ revoked: false })]);
  expect(failed.stderr).toContain("still accepts it");
  expect(readFileSync(file, "utf8")).not.toContain("sk_kept");
  write(service.url);
  const asked = service.asked.length;
  expect((await out("--keep-key")).code).toBe(0);
  expect(service.asked.length).toBe(asked);
});

it("another profile does not become the default unnoticed, and signing out of the default says which is used then", async () => {
  const place = join(home, "profiles");
  const file = join(place, "berth", "config.json");
  const signing = (...args: string[]) =>
    start(args, { XDG_CONFIG_HOME: place, BERTH_URL: "", BERTH_TOKEN: "" }, program, "sk_other").ended;
  const current = () => (JSON.parse(readFileSync(file, "utf8")) as { current: string }).current;
  const login = (...args: string[]) => signing("login", service.url, "--with-token", ...args);
  await login();
  const other = await login("--profile", "op");
  expect([other.code, current(), other.stderr]).toEqual([
    0,
    "default",
    expect.stringMatching(/Commands still use the profile default; .*--profile op/),
  ]);
  const listed = async () =>
    (
      JSON.parse((await signing("profiles", "list", "--json")).stdout) as {
        data: { name: string; used: boolean }[];
      }
    ).data.map(({ name, used }) => [name, used]);
  expect(await listed()).toEqual([
    ["default", true],
    ["op", false],
  ]);
  expect((await signing("profiles", "use", "op")).stdout).toBe(
    `Commands use the profile op from now on: ${service.url}.\n`,
  );
  expect([await listed(), current()]).toEqual([
    [
      ["default", false],
      ["op", true],
    ],
    "op",
  ]);
  expect((await signing("profiles", "list")).stdout).toContain(service.url);
  const unknown = await signing("profiles", "use", "constructor");
  expect([unknown.code, unknown.stderr, current()]).toEqual([
    2,
    expect.stringContaining("There is no profile constructor."),
    "op",
  ]);
  const hidden = await start(["profiles", "use", "default"], { XDG_CONFIG_HOME: place, BERTH_PROFILE: "op" })
    .ended;
  expect([hidden.code, current(), hidden.stdout]).toEqual([
    0,
    "default",
    "Commands use the profile default where BERTH_PROFILE is not set. Here it is set, to op.\n",
  ]);
  const out = await signing("logout");
  expect([out.code, current(), out.stderr]).toEqual([
    0,
    "op",
    expect.stringContaining("Commands use the profile op from now on"),
  ]);
  expect((await signing("logout")).stderr).toBe("");
  expect((await login("--profile", "third")).stderr).toBe("");
  expect(current()).toBe("third");
});

it("colours are for terminals that want them: none in a pipe, with NO_COLOR, or in JSON", async () => {
  const escape = "\u001b[";
  expect((await berth("sites", "list")).stdout).not.toContain(escape);
  expect((await start(["sites", "list"], { FORCE_COLOR: "1" }).ended).stdout).toContain(escape);
  for (const [args, env] of [
    [["sites", "list"], { FORCE_COLOR: "1", NO_COLOR: "1" }],
    [["sites", "list", "--no-color"], { FORCE_COLOR: "1" }],
    [["sites", "list", "--json"], { FORCE_COLOR: "1" }],
  ] as [string[], Record<string, string>][])
    expect((await start(args, env).ended).stdout).not.toContain(escape);
});
