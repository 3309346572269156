import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { local, pay, request } from "./service.ts";

/** The built file in a terminal of its own, and the real clients of databases. */
const home = mkdtempSync(join(tmpdir(), "berth-streams-"));
const program = join(home, "berth.mjs");
const env = {
  PATH: process.env["PATH"],
  HOME: home,
  TERM: "xterm-256color",
  BERTH_URL: local.siteUrl,
  BERTH_TOKEN: local.apiKey,
};
const api = async <Body>(method: string, path: string, body?: unknown): Promise<Body> => {
  const answer = await request(`${local.baseUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${local.apiKey}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return JSON.parse(answer.text) as Body;
};

let databaseIds: Record<string, string> = {};
let databaseId: string;
async function runningDatabase(type: string): Promise<string> {
  const made = await api<{ databaseId: string; invoiceToken: string }>("POST", "/databases", {
    name: `through-the-tunnel-${type}`,
    type,
  });
  await pay(made.invoiceToken);
  const status = async () => (await api<{ status: string }>("GET", `/databases/${made.databaseId}`)).status;
  await vi.waitUntil(async () => (await status()) === "RUNNING", { timeout: 240_000, interval: 2000 });
  return made.databaseId;
}
beforeAll(async () => {
  await bundleCli(program);
  ({ postgresql: databaseId = "" } = databaseIds = Object.fromEntries(
    await Promise.all(
      ["postgresql", "mysql", "redis"].map(async (type) => [type, await runningDatabase(type)] as const),
    ),
  ));
}, 300_000);
afterAll(async () => {
  for (const id of Object.values(databaseIds)) await api("DELETE", `/databases/${id}?skipFinalBackup=1`);
  rmSync(home, { recursive: true, force: true });
});

type Run = { code: number | null; stdout: string; stderr: string };
function start(name: string, args: string[]) {
  const child = spawn(name, args, { cwd: home, env, stdio: "pipe" });
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (run.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (run.stderr += part.toString()));
  const ended = new Promise<Run>((resolve) => child.once("close", (code) => resolve({ ...run, code })));
  const seen = (pattern: RegExp) => expect.poll(() => run.stdout, { timeout: 30_000 }).toMatch(pattern);
  return { child, seen, ended, run };
}
const berth = (...args: string[]) => start(process.execPath, [program, ...args]);

it("psql opens on a database without public access, reads a hundred megabytes, and its exit code is kept", async () => {
  const connect = [
    "databases",
    "connect",
    "through-the-tunnel-postgresql",
    "--",
    "--tuples-only",
    "--no-align",
  ];
  const read = await berth(
    ...connect,
    "--command=SELECT repeat(md5(n::text), 32) FROM generate_series(1, 100000) n",
  ).ended;
  expect([read.code, read.stderr, read.stdout.length]).toEqual([0, "", 100_000 * (32 * 32 + 1)]);
  const failing = await berth(...connect, "--set=ON_ERROR_STOP=1", "--file=no-such-file").ended;
  expect(failing.code).not.toBe(0);
}, 120_000);

it("mariadb opens on a database, and its exit code is kept", async () => {
  const sql = (text: string) =>
    berth(
      "databases",
      "connect",
      databaseIds["mysql"] ?? "",
      "--",
      "--batch",
      "--skip-column-names",
      `--execute=${text}`,
    ).ended;
  expect(
    await sql("CREATE TABLE t (n INT); INSERT INTO t VALUES (20), (22); SELECT sum(n) FROM t"),
  ).toMatchObject({ code: 0, stdout: "42\n" });
  expect(await sql("SELECT nothing")).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing") });
});

it("redis-cli opens on a database, and takes commands from standard input", async () => {
  const connect = berth("databases", "connect", databaseIds["redis"] ?? "");
  connect.child.stdin.end("SET greeting hello\nGET greeting\n");
  const { code, stdout } = await connect.ended;
  expect([code, stdout]).toEqual([0, "OK\nhello\n"]);
});

it("where the client is not installed, a person gets a prompt that reads, writes when asked to, and goes on after errors", async () => {
  const line = `PATH=${join(home, "nothing")} ${process.execPath} ${program} databases connect ${databaseIds["mysql"]} --yes`;
  const typed = start("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"]);
  await typed.seen(/is not installed; this prompt/);
  await typed.seen(/> /);
  typed.child.stdin.write("SELECT 40 + 2 AS answer\r");
  await typed.seen(/ANSWER\s+42/i);
  typed.child.stdin.write("SELECT nothing\r");
  await typed.seen(/✗/);
  typed.child.stdin.write("!CREATE TABLE made_here (n INT)\r");
  await typed.seen(/rows changed/);
  typed.child.stdin.write("\r");
  expect((await typed.ended).code).toBe(0);
});

it("a tunnel takes connection after connection until Ctrl-C, and shows no password", async () => {
  const tunnel = berth("databases", "tunnel", databaseId, "--json");
  await tunnel.seen(/"address"/);
  const { address } = JSON.parse(tunnel.run.stdout) as { address: string };
  const { password } = await api<{ password: string }>("GET", `/databases/${databaseId}/credentials`);
  expect(tunnel.run.stdout + tunnel.run.stderr).not.toContain(password);
  const one = (sql: string) =>
    start("env", [`PGPASSWORD=${password}`, "psql", "-At", `--command=${sql}`, address]).ended;
  expect(await Promise.all([one("SELECT 1"), one("SELECT 2")])).toMatchObject([
    { code: 0, stdout: "1\n" },
    { code: 0, stdout: "2\n" },
  ]);
  tunnel.child.kill("SIGINT");
  expect((await tunnel.ended).code).toBe(130);
  expect((await one("SELECT 3")).code).not.toBe(0);
});

it("a person types in a terminal of the site, changes its size, and leaves with the shell's exit code", async () => {
  const go = join(home, "resize");
  const line = [
    "stty cols 90 rows 30",
    `(until [ -e ${go} ]; do sleep 0.1; done; stty cols 132 rows 50 </dev/tty) &`,
    `${process.execPath} ${program} terminal --site ${local.sampleSite.id}`,
  ].join("\n");
  const typed = start("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"]);
  await typed.seen(/Ctrl-\] leaves/);
  typed.child.stdin.write("stty size; echo $BERTH_SITE_ID\r");
  await typed.seen(new RegExp(`30 90\\s+${local.sampleSite.id}`));
  writeFileSync(go, "");
  await expect
    .poll(
      () => {
        typed.child.stdin.write("stty size\r");
        return typed.run.stdout;
      },
      { timeout: 20_000, interval: 300 },
    )
    .toMatch(/50 132\s/);
  typed.child.stdin.write("exit 7\r");
  expect((await typed.ended).code).toBe(7);
});

it("without a terminal there is no shell, and the command says what to use instead", async () => {
  expect(await berth("terminal", "--site", local.sampleSite.id).ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("berth exec"),
  });
});
