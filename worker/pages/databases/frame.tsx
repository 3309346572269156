import type { Child } from "hono/jsx";
import type { Database } from "../../../protocol/api/databases.ts";
import type { DatabaseType } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { keepSuspendedDays } from "../../domain/terms.ts";
import { Act } from "../kit/form.tsx";
import type { Frame } from "../kit/layout.tsx";
import { unpaidInvoiceOf } from "../../services/refuse-unpaid.ts";
import { Callout, Day, Heading, Live, Status, Tabs, Time } from "../kit/parts.tsx";
import type { View } from "../kit/screen.ts";
import { inLabels } from "../kit/setting-labels.ts";
import { suspendedFor } from "../kit/viewer.ts";
import { databaseWords } from "../kit/words.ts";

/** Such as `PostgreSQL 17.2`, or `PostgreSQL 17` before a server has told its version. */
export const engineVersion = (type: DatabaseType, told: string | null = null): string =>
  `${databaseEngines[type].name} ${told ?? databaseEngines[type].image.split(":").at(-1) ?? ""}`;

export const databasePath = (id: string, tab = ""): string => `/databases/${id}${tab && `/${tab}`}`;

const tabs = [
  ["", "Overview"],
  ["connect", "Connect"],
  ["data", "Data"],
  ["logs", "Logs"],
  ["metrics", "Metrics"],
  ["backups", "Backups"],
  ["access", "Access"],
  ["settings", "Settings"],
] as const;
type DatabaseTab = (typeof tabs)[number][0];

/** A database, and the page of the invoice that it waits for. */
type Opened = { database: Database; payAt: string | null };

export async function openDatabase(ctx: Ctx, id: string): Promise<Opened> {
  const database = await call(ctx, "getDatabase", { id });
  const isDue = database.status === "PENDING" || database.status === "SUSPENDED";
  const token = isDue ? await unpaidInvoiceOf(ctx, database.id) : null;
  return { database, payAt: token === null ? null : `/invoice/${token}` };
}

const Version = ({ database }: { database: Database }) => (
  <>
    {engineVersion(database.type, database.version)}
    {" · "}
    <code>{database.host}</code>
    {database.paidUntil !== null && (
      <>
        {" · paid until "}
        <Day at={database.paidUntil} />
      </>
    )}
  </>
);

/** Everything that needs the owner, whichever tab is open. */
const Notices = ({ database, payAt }: Opened) => (
  <>
    {database.status === "PENDING" && (
      <Callout tone="warn" title="Not paid yet">
        <p>The database is set up as soon as its invoice is paid. Sites can be linked to it before that.</p>
        <Pay payAt={payAt} />
      </Callout>
    )}
    {database.status === "SUSPENDED" && suspendedFor() !== null && (
      <Callout tone="warn" title="Stopped, because the account is suspended">
        <p>Its data is kept.</p>
      </Callout>
    )}
    {database.status === "SUSPENDED" && suspendedFor() === null && (
      <Callout tone="warn" title="Stopped, because its term has ended">
        <p>
          It starts again automatically once the renewal is paid. Without payment, it is deleted with its data{" "}
          {keepSuspendedDays} days after it was stopped.
        </p>
        <Pay payAt={payAt} />
      </Callout>
    )}
    {database.error !== null && (
      <Callout
        tone="bad"
        title={database.status === "FAILED" ? "The database is not running" : "The last change failed"}
      >
        <p>{inLabels(database.error)}</p>
      </Callout>
    )}
    {database.hostOffline && database.status !== "PENDING" && (
      <Callout tone="warn" title="Its host cannot be reached">
        <p>What you request here is done once the host is back.</p>
      </Callout>
    )}
    {database.waitsFor !== null && (
      <Callout tone="busy">
        <p>{database.waitsFor}</p>
      </Callout>
    )}
    {database.notice !== null && (
      <Callout tone="warn">
        <p>{inLabels(database.notice)}</p>
      </Callout>
    )}
    {database.restoring !== null && (
      <Callout tone="busy" title="A backup is being restored">
        <p>
          Begun <Time at={database.restoring.since} />. The current data stays in use until the restored data
          is complete.
        </p>
      </Callout>
    )}
    {database.backups.failing !== null && (
      <Callout tone="warn" title="Backups are failing">
        <p>
          Since <Day at={database.backups.failing.since} />: {database.backups.failing.reason}
        </p>
      </Callout>
    )}
  </>
);

const Pay = ({ payAt }: { payAt: string | null }) =>
  payAt === null ? null : (
    <div class="buttons">
      <a class="button primary" href={payAt}>
        To the invoice
      </a>
    </div>
  );

const Actions = ({ database: { id, name, status } }: { database: Database }) => {
  const act = (action: string, label: string) => (
    <Act
      id="act"
      of={action}
      action={databasePath(id, "settings")}
      label={label}
      about={name}
      values={{ action }}
    />
  );
  if (status === "RUNNING") return act("restart", "Restart");
  if (status === "STOPPED" || status === "FAILED") return act("start", "Start");
  return null;
};

/** The frame of a database's tabs: heading with its state, what needs the owner, and the tabs. */
export const databaseFrame = (
  { database, payAt }: Opened,
  current: DatabaseTab,
  body: Child,
  more: Partial<Frame> = {},
): View => ({
  title: current === "" ? database.name : (tabs.find(([tab]) => tab === current)?.[1] ?? current),
  section: "databases",
  crumbs: [
    { label: "Databases", href: "/databases" },
    ...(current === "" ? [] : [{ label: database.name, href: databasePath(database.id) }]),
  ],
  about: [database.id],
  state: databaseWords[database.status],
  ...more,
  body: (
    <>
      <Live id="database-head">
        <Heading
          title={database.name}
          status={<Status {...databaseWords[database.status]} />}
          below={<Version database={database} />}
        >
          <Actions database={database} />
        </Heading>
      </Live>
      <Tabs
        label={`Database ${database.name}`}
        tabs={tabs.map(([tab, label]) => ({ href: databasePath(database.id, tab), label }))}
        current={databasePath(database.id, current)}
      />
      <Live id="database-notices">
        <Notices database={database} payAt={payAt} />
      </Live>
      {body}
    </>
  ),
});

/** What only a running server can tell, or why it cannot be told now. */
export type Told<Value> = { value: Value } | { reason: string };

export async function told<Value>(asking: Promise<Value>): Promise<Told<Value>> {
  try {
    return { value: await asking };
  } catch (error) {
    if (!(error instanceof AppError) || (error.code !== "conflict" && error.code !== "payment_required"))
      throw error;
    const { reason } = error.extra;
    return { reason: typeof reason === "string" ? reason : "It is available once the invoice is paid." };
  }
}

/** Why something is not shown: in the person's words for a server that does not run. */
export const NotTold = ({ database, reason }: { database: Database; reason: string }) => (
  <p class="body soft">
    {database.status === "RUNNING" ? reason : "Shown while the database is in service."}
  </p>
);
