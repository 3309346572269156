import * as z from "zod";
import { BackupSettingsPatch, type Backup } from "../../../protocol/api/backups.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { conflict } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Button, Check, Field, Form, Select, typedInto } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Empty, Pager, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { backupWords, triggerWords } from "./backup-words.tsx";
import { databaseFrame, databasePath, engineNames, openDatabase } from "./frame.tsx";

const size = (bytes: number): string =>
  bytes >= 1e9
    ? `${(bytes / 1e9).toFixed(1)} GB`
    : bytes >= 1e6
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${Math.ceil(bytes / 1000)} kB`;

const contents = ({ type, tables, rows }: Backup): string =>
  [
    tables !== null && type !== "redis" && `${tables} ${tables === 1 ? "table" : "tables"}`,
    rows !== null && `${rows.toLocaleString("en-US")} ${type === "redis" ? "keys" : "rows"}`,
  ]
    .filter(Boolean)
    .join(", ");

const Restore = ({
  backup,
  database,
  targets,
}: {
  backup: Backup;
  database: Database;
  targets: readonly Database[];
}) => (
  <details class="menu" open={typedInto(`restore:${backup.id}`) !== undefined}>
    <summary class="button" aria-label={`Restore the backup of ${backup.createdAt}`}>
      Restore …
    </summary>
    <div class="wide-menu">
      <p>
        All data of the chosen database is replaced by that of <Time at={backup.createdAt} />. What was
        written since is lost.
      </p>
      <ol class="steps soft">
        <li>The present data is backed up.</li>
        <li>The backup is restored beside it; the present data stays in use meanwhile.</li>
        <li>Once it is complete, the server restarts with it, which takes some seconds.</li>
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
        <Field
          name="confirm"
          label="Type the name of the database whose data is replaced"
          required
          autocomplete="off"
          placeholder={database.name}
        />
        <p class="form-end">
          <Button label="Replace its data" kind="danger primary" />
        </p>
      </Form>
    </div>
  </details>
);

const Row = ({
  backup,
  database,
  targets,
}: {
  backup: Backup;
  database: Database;
  targets: readonly Database[];
}) => {
  const isStored = backup.status === "STORED" || backup.status === "VERIFIED";
  return (
    <tr>
      <td>
        <Status {...backupWords[backup.status]} />
        {backup.error !== null && <div class="bad small">{backup.error}</div>}
        {backup.verifiedAt !== null && (
          <div class="soft small">
            tried by restoring it, <Time at={backup.verifiedAt} />
          </div>
        )}
      </td>
      <td>
        <Time at={backup.createdAt} />
        <div class="soft small">{triggerWords[backup.trigger]}</div>
      </td>
      <td class="wide-only">
        {backup.sizeBytes !== null && size(backup.sizeBytes)}
        <div class="soft small">{contents(backup)}</div>
      </td>
      <td class="end">
        <div class="buttons">
          {isStored && <Restore backup={backup} database={database} targets={targets} />}
          {isStored && (
            <Act
              id="download"
              of={backup.id}
              label="Download"
              about={`backup of ${backup.createdAt}`}
              plain
              values={{ backupId: backup.id }}
            />
          )}
          <details class="menu">
            <summary class="button" aria-label={`More for the backup of ${backup.createdAt}`}>
              ⋯
            </summary>
            <div>
              {backup.status !== "RUNNING" && backup.sizeBytes !== null && (
                <Act
                  id="verify"
                  of={backup.id}
                  label="Try it again by restoring it"
                  values={{ backupId: backup.id }}
                />
              )}
              <Act
                id="remove"
                of={backup.id}
                label={backup.status === "RUNNING" ? "Cancel it" : "Delete it for good"}
                kind="danger"
                values={{ backupId: backup.id }}
              />
            </div>
          </details>
        </div>
      </td>
    </tr>
  );
};

const Schedule = ({ database }: { database: Database }) => (
  <div class="body">
    <p class="soft">
      {database.backups.nextAt === null ? (
        "No backup is planned."
      ) : (
        <>
          The next one: <Time at={database.backups.nextAt} />.
        </>
      )}
    </p>
    <Form id="schedule">
      <Select
        name="schedule"
        label="How often"
        value={database.backups.schedule ?? ""}
        options={[
          ["daily", "Every day"],
          ["weekly", "Every week"],
          ["", "Only when asked for"],
        ]}
      />
      <Field
        name="hourUtc"
        label="Hour"
        type="number"
        min={0}
        max={23}
        value={String(database.backups.hourUtc)}
        hint="From 0 to 23, in UTC."
        required
      />
      <Field
        name="keep"
        label="Keep"
        type="number"
        min={1}
        max={60}
        value={String(database.backups.keep)}
        hint="How many verified backups are kept; older ones are deleted."
        required
      />
      {database.notice !== null && (
        <Check
          name="acceptSmaller"
          label="Accept that backups hold far less than before; the larger one is no longer kept"
        />
      )}
      <p class="form-end">
        <Button label="Save the schedule" />
      </p>
    </Form>
  </div>
);

/** A form sends numbers and choices as text. */
const ScheduleForm = z.object({
  schedule: z.enum(["daily", "weekly", ""]).transform((often) => (often === "" ? null : often)),
  hourUtc: z.coerce.number(),
  keep: z.coerce.number(),
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
      call(ctx, "listDatabases", { limit: 100 }),
    ]);
    const targets = all.data.filter(({ type, status }) => type === database.type && status !== "PENDING");
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
                text={`A backup of ${engineNames[database.type]} is made while it serves, and is then restored into a temporary server and compared, so that you know it works.`}
              />
            ) : (
              <table class="roomy">
                <thead>
                  <tr>
                    <th scope="col">State</th>
                    <th scope="col">When</th>
                    <th scope="col" class="wide-only">
                      Size
                    </th>
                    <th scope="col" class="end">
                      <span class="hidden-text">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {data.map((backup) => (
                    <Row backup={backup} database={database} targets={targets} />
                  ))}
                </tbody>
              </table>
            )}
          </Card>
          <Pager path={databasePath(database.id, "backups")} next={nextCursor} label="Older backups" />
        </div>
        <Card title="Schedule">
          <Schedule database={database} />
        </Card>
      </div>,
    );
  },
  forms: {
    async create({ ctx, param }) {
      await call(ctx, "createBackup", { id: param("id") });
      return { to: databasePath(param("id"), "backups"), said: "A backup is being made, and is then tried." };
    },
    async schedule({ ctx, param }, fields) {
      const backups = parsed(BackupSettingsPatch, parsed(ScheduleForm, fields.record()));
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
    async download({ ctx }, fields) {
      return { to: (await call(ctx, "linkBackup", { id: fields.text("backupId") })).url };
    },
    async verify({ ctx, param }, fields) {
      await call(ctx, "verifyBackup", { id: fields.text("backupId") });
      return { to: databasePath(param("id"), "backups"), said: "The backup is being tried again." };
    },
    async remove({ ctx, param }, fields) {
      await call(ctx, "deleteBackup", { id: fields.text("backupId") });
      return { to: databasePath(param("id"), "backups"), said: "The backup is deleted." };
    },
  },
};
