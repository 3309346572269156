import { randomBytes } from "node:crypto";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tar from "tar-stream";
import { createStore } from "../../agent/databases/backups/store.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import { handle } from "../../agent/handlers/index.ts";
import type { Host } from "../../agent/host.ts";
import type { DatabaseSpec, Job, JobKind, JobResult } from "../../protocol/agent/jobs.ts";
import { closedAccess } from "./closed-access.ts";
import { databaseSpec } from "./database-spec.ts";
import { emptyDisk } from "./empty-disk.ts";
import { engine, newId } from "./engine.ts";
import { jobRun } from "./job-run.ts";
import { PartServer } from "./part-server.ts";

const neverAborted = new AbortController().signal;

/** What the procedures for databases use of an agent: no firewall, no sites, room for everything. */
export const databaseAgent = (
  means: Pick<Host, "agentId" | "workDirectory"> & Partial<Pick<Host, "engine" | "backups" | "ingress">>,
): Host =>
  ({
    engine,
    isolation: { demand: async () => undefined, refresh: async () => undefined },
    buildRoom: emptyDisk(),
    publicAccess: closedAccess(means.agentId),
    ingress: { sites: () => [], current: () => null },
    ...means,
  }) as unknown as Host;

/** A host of databases and their backups on the real engine, without a control plane. */
export class DatabaseHost {
  readonly server = new PartServer();
  readonly engine = engine;
  readonly agentId: string;
  readonly accountId = newId("account");
  private readonly folder = mkdtempSync(join(tmpdir(), "berth-databases-"));
  private readonly specs: DatabaseSpec[] = [];
  private host!: Host;

  constructor(agentId = randomBytes(8).toString("hex")) {
    this.agentId = agentId;
  }

  async open(): Promise<this> {
    const url = await this.server.listen();
    const backups = createStore({ url, token: this.server.token });
    this.host = databaseAgent({ agentId: this.agentId, backups, workDirectory: this.folder });
    return this;
  }

  async close(): Promise<void> {
    for (const spec of this.specs) await this.does("database.delete", spec);
    this.server.close();
    rmdirSync(this.folder);
  }

  specOf(type: DatabaseSpec["type"], name: string = type, image?: string): DatabaseSpec {
    const found = databaseSpec({ databaseId: newId("database"), accountId: this.accountId, type }, name);
    const spec = { ...found, ...(image !== undefined && { image }) };
    this.specs.push(spec);
    return spec;
  }

  async provision(type: DatabaseSpec["type"], name: string, image?: string): Promise<DatabaseSpec> {
    const spec = this.specOf(type, name, image);
    await this.does("database.provision", { database: spec });
    return spec;
  }

  does<K extends JobKind>(kind: K, args: object): Promise<JobResult<K>> {
    const id = newId("job");
    const run = jobRun({ jobId: id, signal: neverAborted });
    return handle(this.host, { id, kind, args } as unknown as Job, run) as Promise<JobResult<K>>;
  }

  async backUp(spec: DatabaseSpec): Promise<string> {
    const backupId = newId("backup");
    await this.does("database.backup", { database: spec, backupId, attempt: 1, serving: true });
    return backupId;
  }

  /** In a server with its own login, as the control plane requests it. */
  async verify(spec: DatabaseSpec, backupId: string): Promise<string | null> {
    const like = {
      ...spec,
      adminPassword: "other",
      logins: [{ username: `${spec.databaseName}_0`, password: "other" }],
    };
    const backup = this.server.stored(backupId, spec.databaseName);
    return (await this.does("database.verify", { like, backup })).damage;
  }

  /** Like the control plane: the record names the new volume, and the server is started again. */
  async restore(spec: DatabaseSpec, backupId: string, from = spec): Promise<string | null> {
    const backup = this.server.stored(backupId, from.databaseName);
    const result = await this.does("database.restore", { database: spec, backup, serving: true });
    if (result.damage !== null) return result.damage;
    const replacedVolumes = [spec.volume ?? null];
    spec.volume = result.volume;
    await this.does("database.start", { database: spec, replacedVolumes });
    return null;
  }

  /** Both steps of a rotation: the next login beside the last one, then the next one alone. */
  async rotate(spec: DatabaseSpec): Promise<void> {
    const [last] = spec.logins;
    const number = Number(/\d+$/.exec(last?.username ?? "")?.[0]) + 1;
    const next = { username: `${spec.databaseName}_${number}`, password: randomBytes(12).toString("hex") };
    await this.does("database.rotate", { database: { ...spec, logins: [last, next] } });
    spec.logins = [next];
    await this.does("database.rotate", { database: spec });
  }

  /** Runs a program in the database's container. @throws Error with its output if it fails */
  async run(spec: DatabaseSpec, command: string[], input = ""): Promise<string> {
    const id = containerName(spec.databaseId);
    const { exitCode, stdout, stderr } = await this.engine.execute(id, { command, input });
    if (exitCode !== 0) throw new Error(`${stderr}\n${stdout}`);
    return stdout.trim();
  }

  async put(spec: DatabaseSpec, path: string, bytes: Buffer): Promise<void> {
    const archive = tar.pack();
    archive.entry({ name: path, mode: 0o644 }, bytes);
    archive.finalize();
    await this.engine.writeFiles(containerName(spec.databaseId), "/", archive);
  }

  /**
   * Runs statements as the owner of a PostgreSQL database, whose first statements may be options of the session; or
   * as another user over the server's own socket.
   */
  psql(spec: DatabaseSpec, input: string, username?: string): Promise<string> {
    const [login] = spec.logins;
    const options = ["--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", `--dbname=${spec.databaseName}`];
    const who =
      username === undefined
        ? [`PGPASSWORD=${login?.password}`, "psql", "--host=127.0.0.1", `--username=${login?.username}`]
        : ["psql", `--username=${username}`];
    return this.run(spec, ["env", "PGCLIENTENCODING=UTF8", ...who, ...options], `${input}\n`);
  }

  /** Runs statements as the owner, with this program of MariaDB's, over the network like any client. */
  mariadb(
    spec: DatabaseSpec,
    input: string,
    program = ["mariadb", "--batch", "--raw", "--skip-column-names"],
  ) {
    const [login] = spec.logins;
    const [name = "", ...options] = program;
    const who = [`--user=${login?.username}`, `--password=${login?.password}`];
    const where = ["--protocol=tcp", "--host=127.0.0.1", "--default-character-set=utf8mb4"];
    return this.run(spec, [name, ...who, ...where, ...options, spec.databaseName], `${input}\n`);
  }
}
