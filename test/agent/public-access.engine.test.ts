import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { containerName } from "../../agent/docker/database-objects.ts";
import { makeAuthority } from "../../agent/databases/certificates.ts";
import { openPublicAccess } from "../../agent/databases/public-access.ts";
import { networkName } from "../../agent/docker/specs.ts";
import { handle } from "../../agent/handlers/index.ts";
import type { Host } from "../../agent/host.ts";
import { removeFirewall } from "../../agent/isolation/firewall.ts";
import { openIsolation } from "../../agent/isolation/isolation.ts";
import { bridgeName } from "../../agent/isolation/rules.ts";
import type { DatabaseSpec, Job, JobResult } from "../../protocol/agent/jobs.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { databaseEngines } from "../../worker/domain/database-engines.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { docker, engine, execute } from "../support/engine.ts";
import { jobRun } from "../support/job-run.ts";
import { plugIn, type Machine } from "../support/machine.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = `acc_${agentId}`;
const folder = temporaryFolder();

const [, main = ""] =
  Object.entries(networkInterfaces())
    .filter(([name]) => !/^(?:lo|docker|br-|bth|veth|bt)/.test(name))
    .flatMap(([name, all]) => (all ?? []).map(({ family, address }) => [family, address, name] as const))
    .find(([family]) => family === "IPv4") ?? [];

/** The agent as it is after each of its starts. */
function startAgent(): Host {
  const publicAccess = openPublicAccess(folder, agentId, main);
  const isolation = openIsolation({
    agentId,
    engine,
    mode: "on",
    allowed: [],
    publicPorts: () => publicAccess.publicPorts(engine),
  });
  return {
    agentId,
    engine,
    isolation,
    publicAccess,
    buildRoom: { demandDisk: async () => undefined },
  } as unknown as Host;
}
let host: Host;

const job = jobRun();
const does = <K extends Job["kind"]>(kind: K, spec: DatabaseSpec): Promise<JobResult<K>> =>
  handle(
    host,
    { id: "job_test", kind, args: { ...spec, database: spec, generation: 1 } } as unknown as Job,
    job,
  ) as Promise<JobResult<K>>;

type Client = {
  /** The engine's own client, as somebody types it who verifies, or who talks plainly; statements come by its input. */
  verified(spec: DatabaseSpec, at: string): string[];
  plain(spec: DatabaseSpec, at: string): string[];
  /** A statement, and what is answered to it. */
  says: [statement: (word: string) => string, answer: (word: string) => string];
};
const login = (spec: DatabaseSpec) => spec.logins[0]!;
const clients: Record<DatabaseSpec["type"], Client> = {
  postgresql: {
    verified: (spec, at) => [
      "psql",
      `postgresql://${login(spec).username}:${login(spec).password}@${at}/${spec.databaseName}?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=5`,
      "-qAt",
    ],
    plain: (spec, at) => [
      "psql",
      `postgresql://${login(spec).username}:${login(spec).password}@${at}/${spec.databaseName}?sslmode=disable&connect_timeout=5`,
      "-qAt",
    ],
    says: [(word) => `SELECT '${word}';\n`, (word) => word],
  },
  mysql: {
    verified: (spec, at) => [
      ...mariadb(spec, at),
      "--ssl-ca=/ca.pem",
      "--ssl-verify-server-cert",
      spec.databaseName,
    ],
    plain: (spec, at) => [...mariadb(spec, at), "--skip-ssl", spec.databaseName],
    says: [(word) => `SELECT '${word}';\n`, (word) => word],
  },
  redis: {
    verified: (spec, at) => [...redisCli(spec, at), "--tls", "--cacert", "/ca.pem"],
    plain: redisCli,
    says: [(word) => `ECHO ${word}\n`, (word) => word],
  },
};
function mariadb(spec: DatabaseSpec, at: string): string[] {
  const [address, port] = at.split(":");
  const { username, password } = login(spec);
  const who = [`--host=${address}`, `--port=${port}`, `--user=${username}`, `--password=${password}`];
  return [
    "mariadb",
    ...who,
    "--batch",
    "--unbuffered",
    "--skip-column-names",
    "--connect-timeout=5",
    "--skip-reconnect",
  ];
}
function redisCli(spec: DatabaseSpec, at: string): string[] {
  const [address = "", port = ""] = at.split(":");
  const { username, password } = login(spec);
  return [
    "redis-cli",
    "-h",
    address,
    "-p",
    port,
    "--user",
    username,
    "--pass",
    password,
    "--no-auth-warning",
  ];
}

/** The client in the machine's network; its statements come when they are said. */
function connect(spec: DatabaseSpec, network: string, command: string[], authority = `${folder}/ca.pem`) {
  const [program = "", ...args] = command;
  const child = spawn("docker", [
    "run",
    "--rm",
    "-i",
    "--network",
    network,
    "--label",
    `berth.test=${agentId}`,
    "-v",
    `${authority}:/ca.pem:ro`,
    "--entrypoint",
    "timeout",
    spec.image,
    "30",
    program,
    ...args,
  ]);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk));
  child.stdin.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return { child, ended, said: () => said };
}
async function ask(spec: DatabaseSpec, network: string, command: string[], authority?: string) {
  const [statement, answer] = clients[spec.type].says;
  const client = connect(spec, network, command, authority);
  client.child.stdin.end(statement("hello"));
  await client.ended;
  return client.said().split("\n").includes(answer("hello")) ? "hello" : client.said();
}

const specs: DatabaseSpec[] = [];
function specOf(type: DatabaseSpec["type"]): DatabaseSpec {
  const ids = { databaseId: `db_${type}${agentId}`, accountId } as Pick<
    DatabaseSpec,
    "databaseId" | "accountId"
  >;
  const spec = databaseSpec({ ...ids, type });
  specs.push(spec);
  return spec;
}

let friend: Machine, stranger: Machine;
beforeAll(async () => {
  await ensureImages(databaseImages);
  host = startAgent();
  await host.isolation.refresh();
  const third = Number.parseInt(agentId.slice(0, 2), 16);
  friend = await plugIn(`bt${agentId.slice(0, 6)}0`, `10.201.${third}`);
  stranger = await plugIn(`bt${agentId.slice(0, 6)}1`, `10.202.${third}`);
}, 15 * 60_000);

afterAll(async () => {
  for (const spec of specs) await does("database.delete", spec);
  const others = await engine.listContainers({ "berth.test": agentId });
  for (const { id } of others) await engine.removeContainer(id);
  for (const machine of [friend, stranger]) await machine.unplug();
  await engine.removeNetwork(networkName(`acc_other${agentId}`));
  await removeFirewall(agentId);
  for (const args of [["-S"], ["-t", "nat", "-S"]])
    expect((await execute("iptables", ["-w", ...args])).stdout).not.toContain(`BERTH-${agentId.slice(0, 4)}`);
});

describe.each(["postgresql", "mysql", "redis"] as const)("a %s database", (type) => {
  const spec = specOf(type);
  const port = 21_000 + specs.length;
  const at = `${main}:${port}`;
  const client = clients[type];
  const openTo = (...allow: string[]) => does("database.expose", { ...spec, publicAccess: { port, allow } });
  const verified = (machine: Machine) => ask(spec, machine.network, client.verified(spec, at));
  const startedAt = async () => (await engine.inspectContainer(containerName(spec.databaseId)))?.startedAt;
  const untilBack = () => vi.waitUntil(async () => (await verified(friend)) === "hello", { timeout: 60_000 });

  it("is closed until it is opened, then open with TLS to those named, without a restart", async () => {
    await does("database.provision", spec);
    const before = await startedAt();
    writeFileSync(join(folder, "ca.pem"), (await host.publicAccess.authority()).certificate);
    expect(await verified(friend)).not.toBe("hello");
    const opened = await openTo(`${friend.address}/32`);
    expect(opened).toMatchObject({ generation: 1, address: main, endsAt: expect.stringMatching(/Z$/) });
    expect(opened.certificateAuthority).toBe((await host.publicAccess.authority()).certificate);
    expect(await verified(friend)).toBe("hello");
    expect(await verified(stranger)).toMatch(/refused|timed out|timeout|Can't connect/i);
    await openTo(`${friend.address}/32`, `${stranger.address.replace(/\.\d+$/, ".0")}/24`);
    expect(await verified(stranger)).toBe("hello");
    await openTo(`${friend.address}/32`);
    expect(await verified(stranger)).not.toBe("hello");
    expect(await startedAt()).toEqual(before);
  });

  it("refuses from outside what is not TLS, and is refused by who was given another authority", async () => {
    expect(await verified(friend)).toBe("hello");
    const plain = await ask(spec, friend.network, client.plain(spec, at));
    expect(plain).not.toBe("hello");
    expect(plain).toMatch(
      {
        postgresql: /no encryption/,
        mysql: /lost connection|gone away|aborted|TLS/i,
        redis: /closed|reset|Protocol error/i,
      }[type],
    );
    writeFileSync(join(folder, "other.pem"), (await makeAuthority("Another", new Date())).certificate);
    expect(await ask(spec, friend.network, client.verified(spec, at), `${folder}/other.pem`)).toMatch(
      /certificate|SSL|TLS/i,
    );
  });

  it("is talked to on its own network as before, plainly and by its name", async () => {
    const inside = `${spec.hostname}:${databaseEngines[type].port}`;
    const plain = client.plain(spec, inside);
    expect(await ask(spec, networkName(accountId), plain)).toBe("hello");
    // MariaDB looks at each session as it begins, also where it names no database.
    const unnamed = plain.filter((word) => word !== spec.databaseName);
    expect(await ask(spec, networkName(accountId), unnamed)).toBe("hello");
  });

  it("is not reached by other accounts' containers, whoever else may", async () => {
    await openTo("0.0.0.0/0");
    expect(await verified(stranger)).toBe("hello");
    const other = networkName(`acc_other${agentId}`);
    await engine.ensureNetwork(other, bridgeName(agentId, other), { "berth.test": agentId });
    await host.isolation.refresh();
    for (const network of [other, networkName(accountId), "bridge"])
      expect(await ask(spec, network, client.verified(spec, at))).not.toBe("hello");
    await openTo(friend.address);
  });

  it("is reached again after its server was killed, after Docker restarted it, and after the agent's own restart", async () => {
    const before = await engine.inspectContainer(containerName(spec.databaseId));
    expect(before?.pid).toBeGreaterThan(1);
    process.kill(before!.pid, "SIGKILL");
    // Before Docker starts it again it is said to run, as process 0.
    await vi.waitUntil(
      async () => {
        const now = await engine.inspectContainer(containerName(spec.databaseId));
        return now?.running && now.pid > 0 && now.pid !== before?.pid;
      },
      { timeout: 60_000 },
    );
    // As at each start of a container that is open.
    await host.isolation.refresh();
    await untilBack();
    await docker("restart", containerName(spec.databaseId));
    await host.isolation.refresh();
    await untilBack();
    host = startAgent();
    expect(await verified(friend)).toBe("hello");
    await host.isolation.refresh();
    expect(await verified(friend)).toBe("hello");
    expect(await verified(stranger)).not.toBe("hello");
  });

  it("takes up another certificate while it runs, and those who are connected stay", async () => {
    const before = await startedAt();
    const [statement] = client.says;
    const open = connect(spec, friend.network, client.verified(spec, at));
    open.child.stdin.write(statement("first"));
    await vi.waitUntil(() => open.said().includes("first"), { timeout: 20_000 });
    rmSync(join(folder, "authority.json"));
    host = startAgent();
    const { certificateAuthority } = await openTo(friend.address);
    expect(await verified(friend)).not.toBe("hello");
    writeFileSync(join(folder, "ca.pem"), certificateAuthority);
    await untilBack();
    open.child.stdin.end(statement("second"));
    await open.ended;
    expect(open.said()).toContain("second");
    expect(await startedAt()).toEqual(before);
  });

  it("is closed at once, also to those who are connected", async () => {
    const [statement] = client.says;
    const open = connect(spec, friend.network, client.verified(spec, at));
    open.child.stdin.write(statement("first"));
    await vi.waitUntil(() => open.said().includes("first"), { timeout: 20_000 });
    expect(await does("database.expose", spec)).toMatchObject({ generation: 1 });
    open.child.stdin.end(statement("second"));
    await open.ended;
    expect(open.said().split("\n")).not.toContain("second");
    expect(await verified(friend)).not.toBe("hello");
  });

  it("comes back open after a stop, and a deletion leaves nothing of it", async () => {
    const opened = { ...spec, publicAccess: { port, allow: [friend.address] } };
    await does("database.expose", opened);
    await does("database.stop", spec);
    expect(await verified(friend)).not.toBe("hello");
    await does("database.start", opened as DatabaseSpec);
    expect(await verified(friend)).toBe("hello");
    await does("database.delete", spec);
    expect((await execute("iptables", ["-w", "-t", "nat", "-S"])).stdout).not.toContain(`--dport ${port} `);
  });
});
