import { expect, it } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { DatabaseStatus } from "../../protocol/states.ts";
import { createBackup } from "../../worker/services/backups/create.ts";
import { restoreDatabase } from "../../worker/services/backups/restore.ts";
import { actOnDatabase } from "../../worker/services/databases/act.ts";
import { removeDatabase } from "../../worker/services/databases/remove.ts";
import { rotatePassword } from "../../worker/services/databases/rotate.ts";
import { sql } from "./hosts-service.ts";
import { api, pay, uniqueName } from "./service.ts";
import { Simulation, simulateSeeds, type Effect, type Verbs } from "./simulation-service.ts";
import { rows } from "./stripe-service.ts";

const rounds = 5;
const sha256 = "a".repeat(64);

const effect: Effect = async ({ id, kind, args }, attempt, containers) => {
  if (kind === "database.stop" || kind === "database.delete") containers.delete(args.databaseId);
  else if (kind === "database.backup") {
    if (!args.serving) containers.delete(args.database.databaseId);
    // What its upload leaves.
    await sql(
      "UPDATE backups SET sha256 = ?1, size_bytes = 1, fingerprint_sha256 = ?1, attempt = ?2 WHERE id = ?3",
      sha256,
      attempt,
      args.backupId,
    );
  } else if ("database" in args && kind !== "database.rotate") containers.set(args.database.databaseId, "up");
  return { version: "17", damage: null, ...(kind === "database.restore" && { volume: id }) };
};

type Row = { status: DatabaseStatus; wanted: string; host_id: string };

/** One run again: `BERTH_SEED=123 vitest run --project worker test/worker/database-simulation.test.ts`. */
async function simulate(seed: number, seen: Set<string>): Promise<void> {
  const simulation = await Simulation.of(seed, effect);
  const { body } = await api<DatabaseCreated>(simulation.key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "postgresql",
  });
  const id = body.databaseId;
  await pay(body.invoiceToken);
  const backupId = simulation.ctx.newId("backup");
  await sql(
    `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, version, image, pack_id,
        attempt, size_bytes, sha256, fingerprint_sha256, verifications, created_at)
      SELECT ?1, id, account_id, 'VERIFIED', 'api', name, database_name, type, '17', image, pack_id, 1, 10, ?2, ?2, 0, 1
      FROM databases WHERE id = ?3`,
    backupId,
    sha256,
    id,
  );

  const act = (action: "start" | "stop" | "restart") =>
    simulation.command(
      action,
      (ctx) => actOnDatabase(ctx, { id, action }),
      action === "stop" ? "STOPPED" : "RUNNING",
    );
  const verbs: Verbs = {
    ...simulation.verbs,
    start: act("start"),
    stop: act("stop"),
    restart: act("restart"),
    restore: simulation.command("restore", (ctx) => restoreDatabase(ctx, { id, backupId }), "RUNNING"),
    rotate: simulation.command("rotate", (ctx) => rotatePassword(ctx, { id })),
    backup: simulation.command("backup", (ctx) => createBackup(ctx, { id })),
  };
  const commands = ["start", "stop", "restart", "restore", "rotate"];
  const hosts = ["done", "done", "done", "done", "fail", "fail", "tick", "reconnect"];
  const play = () => simulation.play(verbs, [...commands, "backup", ...hosts], commands);

  const waiting = () =>
    rows(
      `SELECT kind AS what, status FROM jobs WHERE status IN ('QUEUED', 'LEASED')
        UNION ALL SELECT 'backup', status FROM backups WHERE status = 'RUNNING'
        UNION ALL SELECT 'database', status FROM databases WHERE status IN ('PROVISIONING', 'DELETING')
        UNION ALL SELECT 'rotation', status FROM databases
          WHERE next_password_sealed IS NOT NULL OR previous_password_sealed IS NOT NULL AND status = 'RUNNING'`,
    );
  for (let round = 0; round < rounds; round++) {
    await play();
    await simulation.quiet(waiting);
    const [database] = await rows<Row>("SELECT status, wanted, host_id FROM databases");
    const { status, wanted, host_id: hostId } = database ?? { status: "FAILED", wanted: "", host_id: "" };
    const is = (guarantee: string) => simulation.where(`${guarantee}\n${JSON.stringify(database)}`);
    if (status !== "FAILED") {
      expect(simulation.containers(), is("what runs is what the record says")).toEqual(
        status === "RUNNING" ? { [hostId]: "up" } : {},
      );
      expect(wanted, is("what is, is wanted")).toBe(status);
    }
    if (simulation.asked)
      expect(status, is("what the last accepted command asked for is what is")).toBe(simulation.asked);
    seen.add(`${status} as ${simulation.asked ?? "none"} was asked for`);
  }
  // In the middle of it all.
  await play();
  await simulation.command("delete", (ctx) => removeDatabase(ctx, { id }))();
  await simulation.quiet(waiting);
  expect(
    [simulation.containers(), await rows("SELECT id FROM databases")],
    simulation.where("a deleted database leaves nothing but its backups"),
  ).toEqual([{}, []]);
  simulation.close();
}

it(
  "whatever is asked for and fails in any order, a database ends as it was asked for last, and runs where its record says",
  () => simulateSeeds(simulate),
  240_000,
);
