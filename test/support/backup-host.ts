import { randomBytes } from "node:crypto";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createStore } from "../../agent/databases/backups/store.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import { handle } from "../../agent/handlers/index.ts";
import type { DatabaseSpec, Job, JobKind, JobResult } from "../../protocol/agent/jobs.ts";
import { databaseAgent } from "./database-host.ts";
import { databaseSpec } from "./database-spec.ts";
import { engine, newId } from "./engine.ts";
import { jobRun } from "./job-run.ts";
import { PartServer } from "./part-server.ts";

/** An agent's jobs on databases of one account, with a store of backups in this process. */
export async function openBackupHost() {
  const agentId = randomBytes(8).toString("hex");
  const accountId = newId("account");
  const store = new PartServer();
  const url = await store.listen();
  const workDirectory = mkdtempSync(join(tmpdir(), "berth-backups-"));
  const backups = createStore({ url, token: store.token });
  const host = databaseAgent({ agentId, backups, workDirectory });
  const specs: DatabaseSpec[] = [];

  async function does<K extends JobKind>(kind: K, args: object): Promise<JobResult<K>> {
    const id = newId("job");
    const run = jobRun({ jobId: id, signal: new AbortController().signal });
    return (await handle(host, { id, kind, args } as unknown as Job, run)) as JobResult<K>;
  }

  return {
    engine,
    agentId,
    store,
    does,
    async provision(type: DatabaseSpec["type"], name: string, changes: Partial<DatabaseSpec> = {}) {
      const spec = {
        ...databaseSpec({ databaseId: newId("database"), accountId, type }, name),
        ...changes,
      };
      specs.push(spec);
      await does("database.provision", { database: spec });
      return spec;
    },
    async backUp(spec: DatabaseSpec): Promise<string> {
      const backupId = newId("backup");
      await does("database.backup", { database: spec, backupId, attempt: 1, serving: true });
      return backupId;
    },
    /** @returns the damage; null: the backup is good */
    async verify(spec: DatabaseSpec, backupId: string): Promise<string | null> {
      const like = { ...spec, logins: [{ username: `${spec.databaseName}_0`, password: "other" }] };
      const backup = store.stored(backupId, spec.databaseName);
      return (await does("database.verify", { like, backup })).damage;
    },
    /** Like the control plane: the record names the new volume, then the server is started on it. */
    async restore(spec: DatabaseSpec, backupId: string, from = spec): Promise<string | null> {
      const backup = store.stored(backupId, from.databaseName);
      const result = await does("database.restore", { database: spec, backup, serving: true });
      if (result.damage !== null) return result.damage;
      spec.volume = result.volume;
      await does("database.start", { database: spec });
      return null;
    },
    /** Runs statements in the server's container, over its own socket; as PostgreSQL's owner by default. */
    async psql(spec: DatabaseSpec, input: string, username = spec.logins[0]?.username): Promise<string> {
      const options = ["--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1"];
      const command = ["psql", ...options, `--username=${username}`, `--dbname=${spec.databaseName}`];
      const program = { command, env: ["PGCLIENTENCODING=UTF8"], input: `${input}\n` };
      const { exitCode, stdout, stderr } = await engine.execute(containerName(spec.databaseId), program);
      if (exitCode !== 0) throw new Error(stderr);
      return stdout.trim();
    },
    async close(): Promise<void> {
      for (const spec of specs) await does("database.delete", spec);
      store.close();
      rmdirSync(workDirectory);
    },
  };
}
export type BackupHost = Awaited<ReturnType<typeof openBackupHost>>;
