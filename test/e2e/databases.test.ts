import { execFile, execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database, DatabaseCreated, DatabaseCredentials } from "../../protocol/api/databases.ts";
import type { DatabaseQueryResult, WriteConfirmation } from "../../protocol/api/insight.ts";
import type { SiteEvents, SiteLogs, SiteMetrics } from "../../protocol/api/running.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { plugIn } from "../support/machine.ts";
import { api, pay, remove, Repository, request, stateDirectory, until } from "./service.ts";

const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
const execute = promisify(execFile);
const made: string[] = [];
const sites: string[] = [];

const read = async (id: string) => (await api<Database>("GET", `/databases/${id}`)).body;
const settled = (id: string, wanted: string) =>
  until(
    () => read(id),
    ({ status }) => status === wanted || status === "FAILED",
  );
const credentials = async (id: string) =>
  (await api<DatabaseCredentials>("GET", `/databases/${id}/credentials`)).body;

async function launchDatabase(type: string, name: string = type, packId?: string): Promise<Database> {
  const { status, body } = await api<DatabaseCreated>("POST", "/databases", {
    name: `e2e-${name}-${process.pid}`,
    type,
    packId,
  });
  expect(status).toBe(201);
  made.push(body.databaseId);
  expect(await read(body.databaseId)).toMatchObject({ status: "PENDING", version: null });
  await pay(body.invoiceToken);
  return settled(body.databaseId, "RUNNING");
}

const containerOf = (id: string) =>
  docker("ps", "--quiet", "--no-trunc", "--filter", `label=berth.database=${id}`);
function killWithAgent(id: string): void {
  const processes = JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<
    string,
    number
  >;
  process.kill(processes["agent"] ?? 0, "SIGKILL");
  process.kill(Number(docker("inspect", "--format", "{{.State.Pid}}", containerOf(id))), "SIGKILL");
}
const accountOf = (id: string) =>
  docker("inspect", "--format", '{{index .Config.Labels "berth.account"}}', containerOf(id));

/** What the engine's own client says, from a container in the account's network, of the address that was revealed. */
async function ask(id: string, statement: string): Promise<string> {
  const { connectionString } = await credentials(id);
  const { hostname, username, password, pathname, protocol } = new URL(connectionString);
  const programs: Record<string, string[]> = {
    "postgresql:": [
      "postgres:17",
      "psql",
      connectionString,
      "-qAt",
      "-v",
      "ON_ERROR_STOP=1",
      "-c",
      statement,
    ],
    "mysql:": [
      "mariadb:11.4",
      "mariadb",
      `--host=${hostname}`,
      `--user=${username}`,
      `--password=${password}`,
      "--batch",
      "--skip-column-names",
      pathname.slice(1),
      `--execute=${statement}`,
    ],
    "redis:": [
      "redis:7.2",
      "redis-cli",
      "-e",
      "--no-auth-warning",
      "-u",
      connectionString,
      ...statement.split(" "),
    ],
  };
  const [image = "", program = "", ...args] = programs[protocol] ?? [];
  const network = `berth-${accountOf(id)}`;
  const { stdout } = await execute("docker", [
    "run",
    "--rm",
    "--network",
    network,
    "--entrypoint",
    program,
    image,
    ...args,
  ]);
  return stdout.trim();
}

beforeAll(() => ensureImages(databaseImages), 15 * 60_000);
afterAll(async () => {
  for (const id of sites) await remove(id);
  for (const id of made) {
    await api("DELETE", `/databases/${id}`);
    await until(
      async () => (await api("GET", `/databases/${id}`)).status,
      (status) => status === 404,
    );
    expect(docker("ps", "--all", "--quiet", "--filter", `label=berth.database=${id}`)).toBe("");
    expect(docker("volume", "ls", "--quiet", "--filter", `label=berth.database=${id}`)).toBe("");
  }
});

it("a database is opened to one machine on the internet, with TLS, and stays so while the agent is killed", async () => {
  const { id, status } = await launchDatabase("postgresql", "public");
  expect(status).toBe("RUNNING");
  const friend = await plugIn(`be${process.pid % 100_000}`, `10.203.${process.pid % 250}`);
  const authority = join(stateDirectory, "public-ca.pem");
  const visit = async () => {
    const { publicAccess } = await credentials(id);
    writeFileSync(authority, publicAccess?.certificateAuthority ?? "");
    const address = (publicAccess?.connectionString ?? "").replace("ca.pem", "/ca.pem&connect_timeout=5");
    const run = ["run", "--rm", "--network", friend.network, "--volume", `${authority}:/ca.pem:ro`];
    const psql = ["--entrypoint", "psql", "postgres:17", address, "-qAt", "-c", "SELECT 'hello'"];
    return (await execute("docker", [...run, ...psql]).catch((error: Error) => ({ stdout: error.message })))
      .stdout;
  };
  const change = async (publicAccess: object) => {
    expect((await api("PATCH", `/databases/${id}`, { publicAccess })).status).toBe(200);
    return until(
      () => read(id),
      ({ publicAccess }) => publicAccess.applied || publicAccess.error !== null,
    );
  };
  try {
    const opened = await change({ enabled: true, allow: [friend.address] });
    expect(opened.publicAccess).toMatchObject({ applied: true, error: null, host: expect.any(String) });
    expect(await visit()).toBe("hello\n");
    const processes = JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<
      string,
      number
    >;
    const agent = processes["agent"] ?? 0;
    expect(agent).toBeGreaterThan(1);
    process.kill(agent, "SIGKILL");
    expect(await visit()).toBe("hello\n");
    const { connectionString } = (await credentials(id)).publicAccess ?? {};
    await change({ enabled: true, allow: ["203.0.113.0/24"] });
    expect(await visit()).not.toBe("hello\n");
    await change({ enabled: true, allow: [friend.address] });
    expect(await visit()).toBe("hello\n");
    expect((await credentials(id)).publicAccess?.connectionString).toBe(connectionString);
    await change({ enabled: false });
    expect((await credentials(id)).publicAccess).toBeNull();
  } finally {
    await friend.unplug();
  }
});

const rows = "SELECT word FROM kept";
describe.each([
  ["postgresql", "CREATE TABLE kept (word text); INSERT INTO kept VALUES ('kept')", rows],
  ["mysql", "CREATE TABLE kept (word text); INSERT INTO kept VALUES ('kept')", rows],
  ["redis", "SET word kept", "GET word"],
])("a %s database", (type, write, query) => {
  it("is paid, provisioned, reached at the address that is revealed, and keeps its rows when it and the agent are killed", async () => {
    const database = await launchDatabase(type);
    expect(database).toMatchObject({
      status: "RUNNING",
      error: null,
      version: expect.stringMatching(/^\d+\.\d+/),
    });
    await ask(database.id, write);
    killWithAgent(database.id);
    expect(
      await until(
        () => ask(database.id, query).catch(String),
        (answer) => answer === "kept",
      ),
    ).toBe("kept");
    // The agent that took over works for it.
    await api("PATCH", `/databases/${database.id}`, { action: "stop" });
    await settled(database.id, "STOPPED");
    await api("PATCH", `/databases/${database.id}`, { action: "start" });
    await settled(database.id, "RUNNING");
    expect(await ask(database.id, query)).toBe("kept");
  });
});

it("no transaction that pgbench saw committed is lost, and none done by half, when the server and the agent are killed at work", async () => {
  const { id } = await launchDatabase("postgresql", "bank");
  const { connectionString } = await credentials(id);
  const client = [
    "run",
    "--rm",
    "--network",
    `berth-${accountOf(id)}`,
    "--entrypoint",
    "pgbench",
    "postgres:17",
  ];
  /** Also what it printed before it failed. */
  const pgbench = (...args: string[]) =>
    execute("docker", [...client, ...args, connectionString]).catch((error: { stdout: string }) => error);
  await pgbench("--initialize", "--quiet");
  const clients = 4;
  const atWork = pgbench(`--client=${clients}`, "--time=120");
  const recorded = async () => Number(await ask(id, "SELECT count(*) FROM pgbench_history"));
  await until(recorded, (count) => count > 100);
  killWithAgent(id);
  const seen = Number(/actually processed: (\d+)/.exec((await atWork).stdout)?.[1]);
  const kept = await until(
    () => recorded().catch(() => -1),
    (count) => count >= 0,
  );
  expect(seen).toBeGreaterThan(100);
  // Of each client one may have been committed without its hearing of it.
  expect([kept >= seen, kept <= seen + clients]).toEqual([true, true]);
  const sums = [
    "abalance) FROM pgbench_accounts",
    "tbalance) FROM pgbench_tellers",
    "delta) FROM pgbench_history",
  ];
  const [accounts, ...others] = await Promise.all(sums.map((sum) => ask(id, `SELECT sum(${sum}`)));
  expect(others).toEqual([accounts, accounts]);
});

it("a database shows how it does, answers statements, changes nothing unconfirmed, and shows its log", async () => {
  const { id } = await launchDatabase("postgresql", "insight");
  const query = (body: object) =>
    api<DatabaseQueryResult & WriteConfirmation>("POST", `/databases/${id}/query`, body);
  const statement = "CREATE TABLE kept AS SELECT 1 AS n, 'žluť' AS word";
  expect(await query({ statement })).toMatchObject({
    status: 400,
    body: { issues: [{ path: "statement", message: expect.stringContaining("read-only transaction") }] },
  });
  const asked = await query({ statement, write: true });
  expect(asked.status).toBe(409);
  const { confirm } = asked.body;
  expect((await query({ statement, write: true, confirm })).status).toBe(200);
  expect((await query({ statement, write: true, confirm })).body).toMatchObject({
    issues: [{ message: expect.stringContaining("already used") }],
  });
  expect((await query({ statement: "SELECT * FROM kept" })).body).toMatchObject({
    columns: [
      { name: "n", type: "integer" },
      { name: "word", type: "text" },
    ],
    rows: [[1, "žluť"]],
    truncated: false,
  });
  const large = await query({ statement: "SELECT repeat('w', 100000) FROM generate_series(1, 50)" });
  expect([large.status, large.body.truncated]).toEqual([200, true]);
  expect((await query({ statement: "SELECT pg_sleep(30)", timeoutSeconds: 12 })).body).toMatchObject({
    issues: [{ message: expect.stringContaining("longer than 12 s") }],
  });
  expect((await api("GET", `/databases/${id}/insight`)).body).toMatchObject({
    sizeMb: expect.any(Number),
    connections: { used: expect.any(Number) },
  });
  expect((await api("GET", `/databases/${id}/schema`)).body).toMatchObject({ tables: [{ name: "kept" }] });
  const { body } = await api<SiteLogs>("GET", `/databases/${id}/logs?tail=1000`);
  expect(body.data.map(({ text }) => text).join()).toContain("ready to accept connections");
  const { password } = await credentials(id);
  expect(JSON.stringify(body)).not.toContain(password);
  expect(
    await until(
      async () => (await api<SiteMetrics>("GET", `/databases/${id}/metrics`)).body.data,
      (samples) => samples.some(({ memoryMb }) => memoryMb > 1),
    ),
  ).toContainEqual(expect.objectContaining({ cpuMilli: expect.any(Number) }));
  await api("PATCH", `/databases/${id}`, { action: "restart" });
  await until(
    async () => (await api<SiteEvents>("GET", `/databases/${id}/events`)).body.data.map(({ kind }) => kind),
    (kinds) => kinds.includes("stop") && kinds.at(-1) === "start",
  );
});

it("a database that holds more than its pack says so until it does not; one that cannot start is FAILED until it is mended", async () => {
  const pack = { kind: "database", name: "Small", amountCents: 100, memoryMb: 256, cpuMilli: 500, diskGb: 1 };
  const packId = (await api<{ id: string }>("POST", "/packs", pack)).body.id;
  const { id } = await launchDatabase("redis", "outage", packId);
  await ask(id, "SET word kept");
  const container = containerOf(id);
  docker("exec", container, "fallocate", "--length", "1100M", "/data/large");
  const over = await until(
    () => read(id),
    ({ notice }) => notice !== null,
  );
  expect(over).toMatchObject({ status: "RUNNING", notice: expect.stringMatching(/uses 1\.1 GB, .* 1 GB/) });
  docker("exec", container, "rm", "/data/large");
  await until(
    () => read(id),
    ({ notice }) => notice === null,
  );
  await api("PATCH", `/packs/${packId}`, { active: false });

  const log = "/data/appendonlydir/appendonly.aof.manifest";
  docker("exec", container, "sh", "-c", `cp ${log} /data/good && echo broken >${log}`);
  process.kill(Number(docker("inspect", "--format", "{{.State.Pid}}", container)), "SIGKILL");
  const failed = await until(
    () => read(id),
    ({ status }) => status === "FAILED",
  );
  expect(failed.error).toMatch(/^The database's server exited 5 times within a minute.* Its last lines: /s);
  expect(failed.error).not.toContain((await credentials(id)).password);
  const { body } = await api<SiteEvents>("GET", `/databases/${id}/events`);
  expect(body.data.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["disk_full", "crash_loop"]));
  expect((await api<SiteLogs>("GET", `/databases/${id}/logs`)).body.data.length).toBeGreaterThan(0);
  // An agent that begins anew leaves it as it is.
  const processes = JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<
    string,
    number
  >;
  process.kill(processes["agent"] ?? 0, "SIGKILL");
  await until(
    async () => (await api("GET", `/databases/${id}/events`)).status,
    (status) => status === 200,
  );
  expect(docker("inspect", "--format", "{{.State.Running}}", container)).toBe("false");
  const [volume = ""] = docker("volume", "ls", "--quiet", "--filter", `label=berth.database=${id}`).split(
    "\n",
  );
  const folder = docker("volume", "inspect", "--format", "{{.Mountpoint}}", volume);
  execFileSync("cp", [join(folder, "good"), join(folder, "appendonlydir/appendonly.aof.manifest")]);
  await api("PATCH", `/databases/${id}`, { action: "restart" });
  const mended = await until(
    () => read(id),
    ({ status }) => status === "RUNNING",
  );
  expect(mended.error).toBeNull();
  expect(await ask(id, "GET word")).toBe("kept");
});

/** Answers the user it signed in with, over one connection that it made when it started and one made for the request. */
const app = `
const net = require("node:net");
const { hostname, port, username, password } = new URL(process.env.REDIS_URL);
const ask = (socket, line) => new Promise((resolve, reject) => {
  socket.once("data", (data) => resolve(String(data).trim())).once("error", reject).write(line + "\\r\\n");
});
async function connect() {
  const socket = net.connect(Number(port), hostname);
  socket.on("error", () => {});
  const answer = await ask(socket, "AUTH " + username + " " + password);
  if (answer !== "+OK") throw new Error(answer);
  return socket;
}
connect().then((first) => require("node:http").createServer(async (q, s) => {
  try {
    const fresh = await connect();
    s.end([username, await ask(first, "PING"), await ask(fresh, "PING")].join(" "));
    fresh.destroy();
  } catch (error) {
    s.writeHead(500).end(String(error));
  }
}).listen(process.env.PORT));
`;

it("a linked site keeps its database through a change of the password, without one failed request", async () => {
  const database = await launchDatabase("redis", "linked");
  const repository = new Repository({
    Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`,
    "server.js": app,
  });
  const created = await api<{ siteId: string; invoiceToken: string }>("POST", "/sites", {
    name: `e2e-linked-${process.pid}`,
    deployType: "github",
    githubUrl: repository.address,
    port: 3000,
  });
  sites.push(created.body.siteId);
  const linked = await api("POST", `/databases/${database.id}/links`, { siteId: created.body.siteId });
  expect([linked.status, linked.body["variable"]]).toEqual([201, "REDIS_URL"]);
  await pay(created.body.invoiceToken);
  const site = await until(
    async () => (await api<Site>("GET", `/sites/${created.body.siteId}`)).body,
    ({ status }) => status === "RUNNING" || status === "FAILED",
  );
  expect(site.latestDeployment).toMatchObject({ status: "LIVE" });
  const old = await credentials(database.id);
  expect((await request(site.url)).text).toBe(`${old.username} +PONG +PONG`);

  const failures: string[] = [];
  const asking = new AbortController();
  const load = (async () => {
    while (!asking.signal.aborted) {
      const { status, text } = await request(site.url);
      if (status !== 200) failures.push(`${status} ${text}`);
    }
  })();
  expect((await api("POST", `/databases/${database.id}/rotate`)).status).toBe(202);
  await until(
    () => read(database.id),
    ({ rotating, username }) => !rotating && username !== old.username,
  );
  asking.abort();
  await load;
  expect(failures).toEqual([]);
  const { username } = await credentials(database.id);
  expect((await request(site.url)).text).toBe(`${username} +PONG +PONG`);
  const refused = await execute("docker", [
    "run",
    "--rm",
    "--network",
    `berth-${accountOf(database.id)}`,
    "--entrypoint",
    "redis-cli",
    "redis:7.2",
    "-u",
    old.connectionString,
    "PING",
  ]);
  expect(refused.stdout + refused.stderr).toMatch(/WRONGPASS/);
});
