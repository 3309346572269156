import * as z from "zod";
import { BackupSettingsPatch, type Backup } from "../../../protocol/api/backups.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { parsed } from "../../domain/parsed.ts";
import {
  backupForms,
  BackupSchedule,
  BackupTable,
  ReplaceFields,
  RestoreMenu,
  ScheduleForm,
} from "../kit/backups.tsx";
import { Act, Check, Form, Select } from "../kit/form.tsx";
import { cursorIn, databasesOf } from "../kit/paging.ts";
import { Card, Empty, LocalTime, Pager } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseFrame, databasePath, openDatabase } from "./frame.tsx";

const Restore = ({
  backup,
  database,
  targets,
}: {
  backup: Backup;
  database: Database;
  targets: readonly Database[];
}) => (
  <RestoreMenu backup={backup} forms={["restore"]}>
    <p>
      All data in {targets.length > 1 ? "the chosen database" : database.name} is replaced with that of{" "}
      <LocalTime at={backup.createdAt} />. Anything written since is lost.
    </p>
    <ol class="steps soft">
      <li>The current data is backed up. If that fails, it is replaced anyway.</li>
      <li>The backup is restored beside it; the current data stays in use meanwhile.</li>
      <li>Once it is complete, the server restarts with it, which takes a few seconds.</li>
    </ol>
    <Form id="restore" of={backup.id}>
      <input type="hidden" name="backupId" value={backup.id} />
      {targets.length > 1 ? (
        <Select
          name="target"
          label="Into"
          value={database.id}
          options={targets.map(
            ({ id, name }) => [id, id === database.id ? `${name} (this database)` : name] as const,
          )}
        />
      ) : (
        <input type="hidden" name="target" value={database.id} />
      )}
      <ReplaceFields name={database.name} label="Type the name of the database whose data is replaced" />
    </Form>
  </RestoreMenu>
);

const ScheduleOfDatabase = ScheduleForm.extend({
  acceptSmaller: z
    .literal("true")
    .transform(() => true as const)
    .optional(),
});

export const databaseBackups: Screen = {
  path: "/databases/:id/backups",
  async show({ ctx, param, query }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const [{ data, nextCursor }, all] = await Promise.all([
      call(ctx, "listBackups", { id: database.id, limit: 50, ...cursorIn(query, "backup") }),
      databasesOf(ctx),
    ]);
    const targets = all.filter(({ type, status }) => type === database.type && status !== "PENDING");
    return databaseFrame(
      opened,
      "backups",
      <div class="split">
        <div class="stack">
          <Card
            title="Backups"
            end={database.status === "PENDING" ? undefined : <Act id="create" label="Back up now" />}
            id="backups"
            live
          >
            {data.length === 0 ? (
              <Empty
                title="No backups yet"
                text={`A backup of ${databaseEngines[database.type].name} is made while it serves, then restored into a temporary server and compared, so you know it works.`}
              />
            ) : (
              <BackupTable
                backups={data}
                restore={(backup) => <Restore backup={backup} database={database} targets={targets} />}
              />
            )}
          </Card>
          <Pager path={databasePath(database.id, "backups")} next={nextCursor} label="Older backups" />
        </div>
        <Card title="Schedule">
          <BackupSchedule backups={database.backups}>
            {database.notice !== null && (
              <Check
                name="acceptSmaller"
                label="Accept that backups contain far less than before; the larger one is no longer kept"
              />
            )}
          </BackupSchedule>
        </Card>
      </div>,
    );
  },
  forms: {
    async create({ ctx, param }) {
      await call(ctx, "createBackup", { id: param("id") });
      return {
        to: databasePath(param("id"), "backups"),
        said: "A backup is being made; it is then test-restored.",
      };
    },
    async schedule({ ctx, param }, fields) {
      const backups = parsed(BackupSettingsPatch, parsed(ScheduleOfDatabase, fields.record()));
      await call(ctx, "patchDatabase", { id: param("id"), backups });
      return { to: databasePath(param("id"), "backups"), said: "The schedule is saved." };
    },
    async restore({ ctx }, fields) {
      const target = await call(ctx, "getDatabase", { id: fields.text("target") });
      if (fields.text("confirm") !== target.name)
        throw conflict(`Nothing was restored: type ${target.name}, the database whose data is replaced.`);
      await call(ctx, "restoreDatabase", { id: target.id, backupId: fields.text("backupId") });
      return { to: databasePath(target.id), said: "The backup is being restored." };
    },
    ...backupForms(({ param }) => databasePath(param("id"), "backups")),
  },
};
