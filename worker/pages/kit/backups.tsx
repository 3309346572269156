import type { Child } from "hono/jsx";
import * as z from "zod";
import type { Backup, BackupSettings } from "../../../protocol/api/backups.ts";
import { CronExpression } from "../../../protocol/api/schedules.ts";
import { call } from "../../api/call.ts";
import { isCron } from "../../domain/backup-rules.ts";
import { cronWords } from "../../domain/cron-words.ts";
import { backupWords, triggerWords } from "./backup-words.tsx";
import { Act, Field, Form, Select, Submit, typedInto } from "./form.tsx";
import { Head, LocalTime, Status, Time, utc } from "./parts.tsx";
import type { Asked, Screen } from "./screen.ts";
import { inLabels } from "./setting-labels.ts";
import { size } from "./size.ts";

const counted = (type: Backup["type"], count: number): string => {
  const [one, many] =
    type === "redis" ? ["key", "keys"] : type === "volume" ? ["file", "files and folders"] : ["row", "rows"];
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
};

const contents = ({ type, tables, rows }: Backup): string =>
  [
    tables !== null && type !== "redis" && `${tables} ${tables === 1 ? "table" : "tables"}`,
    rows !== null && counted(type, rows),
  ]
    .filter(Boolean)
    .join(", ");

const Row = ({ backup, restore }: { backup: Backup; restore: (backup: Backup) => Child }) => {
  const isStored = backup.status === "STORED" || backup.status === "VERIFIED";
  const hasFile = isStored || (backup.status === "FAILED" && backup.sha256 !== null);
  return (
    <tr>
      <td>
        <Status {...backupWords[backup.status]} />
        {backup.error !== null && <div class="bad small any-break">{inLabels(backup.error)}</div>}
        {hasFile && !isStored && (
          <div class="warn small">
            Its file can be downloaded, but may be damaged or need changes before it can be loaded.
          </div>
        )}
        {backup.consistent === false && (
          <div class="warn small">
            The site could write while it was being read, so not all of it may be from the same moment.
          </div>
        )}
        {backup.verifiedAt !== null && (
          <div class="soft small">
            test-restored <Time at={backup.verifiedAt} />
          </div>
        )}
      </td>
      <td>
        <LocalTime at={backup.createdAt} />
        <div class="soft small">{triggerWords[backup.trigger]}</div>
      </td>
      <td class="wide-only">
        {backup.sizeBytes !== null && size(backup.sizeBytes)}
        <div class="soft small">{contents(backup)}</div>
      </td>
      <td class="end">
        <div class="buttons">
          {isStored && restore(backup)}
          {hasFile && (
            <Act
              id="download"
              of={backup.id}
              label="Download"
              about={`backup of ${utc(backup.createdAt)}`}
              plain
              values={{ backupId: backup.id }}
            />
          )}
          <details class="menu" id={`more-${backup.id}`}>
            <summary class="button" aria-label={`More for the backup of ${utc(backup.createdAt)}`}>
              ⋯
            </summary>
            <div>
              {hasFile && (
                <Act id="verify" of={backup.id} label="Verify it again" values={{ backupId: backup.id }} />
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

/** The menu in which a backup is restored; `forms` are those in it, and a refused one is open again. */
export const RestoreMenu = ({
  backup,
  forms,
  children,
}: {
  backup: Backup;
  forms: readonly string[];
  children: Child;
}) => (
  <details
    class="menu"
    id={`restore-${backup.id}`}
    open={forms.some((form) => typedInto(`${form}:${backup.id}`) !== undefined)}
  >
    <summary class="button" aria-label={`Restore the backup of ${utc(backup.createdAt)}`}>
      Restore …
    </summary>
    <div class="wide-menu">{children}</div>
  </details>
);

/** The end of a form that replaces all data of what has this name. */
export const ReplaceFields = ({ name, label }: { name: string; label: string }) => (
  <>
    <Field name="confirm" label={label} required placeholder={name} />
    <Submit label="Replace its data" kind="danger primary" />
  </>
);

/** `restore`: what is shown at a backup that can be restored. */
export const BackupTable = ({
  backups,
  restore,
}: {
  backups: readonly Backup[];
  restore: (backup: Backup) => Child;
}) => (
  <table class="roomy">
    <Head
      columns={["State", "When", ["Size", "wide-only"], [<span class="hidden-text">Actions</span>, "end"]]}
    />
    <tbody>
      {backups.map((backup) => (
        <Row backup={backup} restore={restore} />
      ))}
    </tbody>
  </table>
);

export const BackupSchedule = ({
  backups,
  children,
}: {
  backups: BackupSettings & { nextAt: string | null };
  /** Further fields. */
  children?: Child;
}) => (
  <div class="body">
    {backups.nextAt !== null && (
      <p class="soft">
        Next backup: <Time at={backups.nextAt} />.
      </p>
    )}
    <Form id="schedule">
      <Select
        name="schedule"
        label="How often"
        value={backups.schedule ?? ""}
        options={[
          ["daily", "Every day"],
          ["weekly", "Every week"],
          ["", "Only on request"],
          // Set elsewhere: the form offers none, and keeps one that is there.
          ...(backups.schedule !== null && isCron(backups.schedule)
            ? [[backups.schedule, cronWords(backups.schedule)] as const]
            : []),
        ]}
      />
      <Field
        name="hourUtc"
        label="Hour"
        type="number"
        min={0}
        max={23}
        value={String(backups.hourUtc)}
        hint="From 0 to 23, in UTC."
        required
      />
      <Field
        name="keep"
        label="Keep"
        type="number"
        min={1}
        max={60}
        value={String(backups.keep)}
        hint="How many verified backups are kept; older ones are deleted."
        required
      />
      {children}
      <Submit label="Save the schedule" />
    </Form>
  </div>
);

/** A form sends numbers and choices as text. */
export const ScheduleForm = z.object({
  schedule: z
    .union([z.enum(["daily", "weekly", ""]), CronExpression])
    .transform((often) => (often === "" ? null : often)),
  hourUtc: z.coerce.number(),
  keep: z.coerce.number(),
});

/** What the rows of `BackupTable` send; `back` is the page that they lead back to. */
export const backupForms = (back: (asked: Asked) => string) =>
  ({
    async download({ ctx }, fields) {
      return { to: (await call(ctx, "linkBackup", { id: fields.text("backupId") })).url };
    },
    async verify(asked, fields) {
      await call(asked.ctx, "verifyBackup", { id: fields.text("backupId") });
      return { to: back(asked), said: "The backup is being verified again." };
    },
    async remove(asked, fields) {
      await call(asked.ctx, "deleteBackup", { id: fields.text("backupId") });
      return { to: back(asked), said: "The backup is deleted." };
    },
  }) satisfies Screen["forms"];
