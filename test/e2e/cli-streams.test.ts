import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { networkTo } from "../support/network.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { api as asked, local, pay } from "./service.ts";

/** The built file in a terminal of its own, and the real clients of databases. */
const home = temporaryFolder();
const program = join(home, "berth.mjs");
const env = {
  PATH: process.env["PATH"],
  HOME: home,
  TERM: "xterm-256color",
  BERTH_URL: local.siteUrl,
  BERTH_TOKEN: local.apiKey,
};
/** With a session: the key's limit is the commands'. */
const api = async <Body>(method: string, path: string, body?: unknown): Promise<Body> =>
  (await asked<Body>(method, path, body)).body;

const made: string[] = [];
async function databaseOf(type: "postgresql" | "mysql" | "redis"): Promise<string> {
  const { databaseId, invoiceToken } = await api<{ databaseId: string; invoiceToken: string }>(
    "POST",
    "/databases",
    { name: `tunnel-to-${type}`, type },
  );
  made.push(databaseId);
  await pay(invoiceToken);
  await vi.waitUntil(
    async () => (await api<{ status: string }>("GET", `/databases/${databaseId}`)).status === "RUNNING",
    { timeout: 120_000, interval: 3000 },
  );
  return databaseId;
}
let databaseId: string;
beforeAll(async () => {
  await bundleCli(program);
  [databaseId] = await Promise.all([databaseOf("postgresql"), databaseOf("mysql"), databaseOf("redis")]);
});
afterAll(() => Promise.all(made.map((id) => api("DELETE", `/databases/${id}?skipFinalBackup=1`))));

type Run = { code: number | null; stdout: string; stderr: string };
function start(name: string, args: string[], more: Record<string, string> = {}) {
  const child = spawn(name, args, { cwd: home, env: { ...env, ...more }, stdio: "pipe" });
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (run.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (run.stderr += part.toString()));
  const ended = new Promise<Run>((resolve) => child.once("close", (code) => resolve({ ...run, code })));
  // A minute is what a command waits for if its key has met its limit.
  const seen = (pattern: RegExp) => expect.poll(() => run.stdout, { timeout: 75_000 }).toMatch(pattern);
  return { child, seen, ended, run };
}
const berth = (...args: string[]) => start(process.execPath, [program, ...args]);

it("psql opens on a database without public access, reads a hundred megabytes, and its exit code is kept", async () => {
  const connect = ["databases", "connect", "tunnel-to-postgresql", "--", "--tuples-only", "--no-align"];
  const read = await berth(
    ...connect,
    "--command=SELECT repeat(md5(n::text), 32) FROM generate_series(1, 100000) n",
  ).ended;
  expect([read.code, read.stderr, read.stdout.length]).toEqual([0, "", 100_000 * (32 * 32 + 1)]);
  const failing = await berth(...connect, "--set=ON_ERROR_STOP=1", "--file=no-such-file").ended;
  expect(failing.code).not.toBe(0);
});

it("mariadb and redis-cli open on databases without public access, write and read", async () => {
  const mariadb = (...more: string[]) =>
    berth("databases", "connect", "tunnel-to-mysql", "--", "--batch", "--skip-column-names", ...more).ended;
  expect(
    await mariadb("--execute=CREATE TABLE t (n INT); INSERT INTO t VALUES (41), (42); SELECT n FROM t"),
  ).toEqual({ code: 0, stdout: "41\n42\n", stderr: "" });
  expect(await mariadb("--execute=SELECT no_such_column")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("no_such_column"),
  });
  const redis = (...more: string[]) => berth("databases", "connect", "tunnel-to-redis", "--", ...more).ended;
  expect(await redis("SET", "greeting", "hello")).toEqual({ code: 0, stdout: "OK\n", stderr: "" });
  expect(await redis("GET", "greeting")).toEqual({ code: 0, stdout: "hello\n", stderr: "" });
});

it("where psql is not installed, Berth's own prompt reads, and writes only after an exclamation mark", async () => {
  const line = `${process.execPath} ${program} databases connect tunnel-to-postgresql`;
  const typed = start("/usr/bin/script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"], {
    PATH: "/nowhere",
  });
  const say = async (statement: string, answer: RegExp) => {
    typed.child.stdin.write(`${statement}\r`);
    await typed.seen(answer);
  };
  await typed.seen(/psql is not installed[\s\S]*tunnel-to-postgresql> /);
  await say("CREATE TABLE kept (word text)", /read-only transaction/);
  for (const statement of ["CREATE TABLE kept (word text)", "INSERT INTO kept VALUES ('ahoy')"]) {
    await say(`!${statement}`, /Type yes to continue: /);
    typed.run.stdout = "";
    await say("yes", /tunnel-to-postgresql> /);
  }
  await say("SELECT upper(word) AS shouted FROM kept", /AHOY/);
  typed.child.stdin.write("\u0004");
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

it("over a network that breaks, a client of a database is told, and the tunnel takes the next connection", async () => {
  const network = await networkTo(Number(new URL(local.siteUrl).port));
  const more = { BERTH_URL: network.url };
  const { password } = await api<{ password: string }>("GET", `/databases/${databaseId}/credentials`);
  const connected = start(
    process.execPath,
    [
      program,
      "databases",
      "connect",
      databaseId,
      "--",
      "--command=SELECT 'here'",
      "--command=SELECT pg_sleep(600)",
    ],
    more,
  );
  await connected.seen(/here/);
  network.cut();
  // 2 is psql's own code for a connection that went bad.
  expect(await connected.ended).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/connection to the service was lost/),
  });

  const tunnel = start(process.execPath, [program, "databases", "tunnel", databaseId, "--json"], more);
  await tunnel.seen(/"address"/);
  const { address } = JSON.parse(tunnel.run.stdout) as { address: string };
  const one = (sql: string) =>
    start("env", [`PGPASSWORD=${password}`, "psql", "-At", `--command=${sql}`, address]);
  network.isDown = true;
  network.cut();
  expect((await one("SELECT 1").ended).code).not.toBe(0);
  network.mend();
  expect(await one("SELECT 2").ended).toMatchObject({ code: 0, stdout: "2\n" });
  tunnel.child.kill("SIGINT");
  const { code, stderr } = await tunnel.ended;
  expect([code, stderr]).toEqual([130, expect.stringContaining("cannot be reached")]);
  network.close();
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
