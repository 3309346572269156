import type { Backup } from "../../../protocol/api/backups.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import type { Answered } from "../../../protocol/api/operations.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { AppError } from "../../domain/app-error.ts";
import { listOwnPacks, type OwnPack } from "../../services/packs/list.ts";
import { Act } from "../kit/form.tsx";
import { sitesOf } from "../kit/paging.ts";
import { Card, Copied, Day, Head, Live, Meter, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { ifBigger, packText } from "../kit/plans.tsx";
import { inLabels } from "../kit/setting-labels.ts";
import { backupsLine } from "../kit/backup-words.tsx";
import {
  databaseFrame,
  databasePath,
  engineVersion,
  NotTold,
  openDatabase,
  told,
  type Told,
} from "./frame.tsx";

type DatabaseInsight = Answered<"getDatabaseInsight">;

const milliseconds = (ms: number): string =>
  ms >= 60_000
    ? `${(ms / 60_000).toFixed(1)} min`
    : ms >= 1000
      ? `${(ms / 1000).toFixed(1)} s`
      : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;

const Statement = ({ text }: { text: string }) => (
  <code class="statement" tabindex={0}>
    {text}
  </code>
);

const Running = ({ queries }: { queries: DatabaseInsight["activeQueries"] }) =>
  queries.length === 0 ? (
    <p class="body soft">Nothing is running right now.</p>
  ) : (
    <table>
      <Head columns={["Statement", "For", "State", [<span class="hidden-text">End</span>, "end"]]} />
      <tbody>
        {queries.map(({ id, statement, durationMs, state, waitsFor, blockedBy = [] }) => (
          <tr>
            <td>
              <Statement text={statement} />
            </td>
            <td class="number">{milliseconds(durationMs)}</td>
            <td>
              {state}
              {waitsFor && <div class="warn small">waits for {waitsFor}</div>}
              {blockedBy.length > 0 && <div class="bad small">blocked by session {blockedBy.join(", ")}</div>}
              <div class="soft small">session {id}</div>
            </td>
            <td class="end">
              <details class="menu" id={`end-${id}`}>
                <summary class="button" aria-label={`End session ${id}`}>
                  End …
                </summary>
                <div>
                  <p class="who">Its statement is rolled back, and its locks are released.</p>
                  <Act
                    id="end"
                    of={id}
                    label={`End session ${id}`}
                    kind="danger"
                    values={{ sessionId: id }}
                  />
                </div>
              </details>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );

const Slow = ({ database, queries }: { database: Database; queries: DatabaseInsight["slowQueries"] }) =>
  queries.length === 0 ? (
    <p class="body soft">
      {database.type === "redis" ? "No command has been slow." : "No statement has been recorded yet."}
    </p>
  ) : (
    <table>
      <Head
        columns={["Statement", ["Calls", "number"], ["On average", "number"], ["In all", "number wide-only"]]}
      />
      <tbody>
        {queries.slice(0, 8).map(({ statement, calls, meanMs, totalMs }) => (
          <tr>
            <td>
              <Statement text={statement} />
            </td>
            <td class="number">{calls}</td>
            <td class="number">{milliseconds(meanMs)}</td>
            <td class="number wide-only">{milliseconds(totalMs)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );

const megabytes = (mb: number): string =>
  mb >= 1024 ? `${(mb / 1024).toFixed(1)} GB` : `${mb.toFixed(mb < 10 ? 1 : 0)} MB`;

const Now = ({
  database,
  insight,
  pack,
  packs,
}: {
  database: Database;
  insight: Told<DatabaseInsight>;
  pack: OwnPack | undefined;
  packs: readonly OwnPack[];
}) => {
  if (!("value" in insight)) return <NotTold database={database} reason={insight.reason} />;
  const { sizeMb, connections, cacheHitRatio } = insight.value;
  const limit = database.type === "redis" ? (pack?.memoryMb ?? null) : pack ? pack.diskGb * 1024 : null;
  return (
    <div class="body">
      <Meter
        label={database.type === "redis" ? "Memory" : "Size"}
        used={sizeMb}
        limit={limit}
        bigger={ifBigger(
          packs,
          pack,
          ({ memoryMb, diskGb }) => (database.type === "redis" ? memoryMb : diskGb),
          `${databasePath(database.id, "settings")}#plan`,
        )}
        said={limit === null ? megabytes(sizeMb) : `${megabytes(sizeMb)} of ${megabytes(limit)}`}
      />
      <Meter
        label="Connections"
        used={connections.used}
        limit={connections.max}
        said={`${connections.used} of ${connections.max.toLocaleString("en-US")}`}
      />
      <div class="meter">
        <div>
          <span>Read from memory</span>
          <span>{cacheHitRatio === null ? "nothing read yet" : `${(cacheHitRatio * 100).toFixed(1)}%`}</span>
        </div>
      </div>
    </div>
  );
};

const Facts = ({
  database,
  pack,
  sites,
  latest,
}: {
  database: Database;
  pack: OwnPack | undefined;
  sites: readonly Site[];
  latest: Backup | undefined;
}) => (
  <dl>
    <dt>Kind</dt>
    <dd>{engineVersion(database.type, database.version)}</dd>
    <dt>Address</dt>
    <dd>
      <Copied text={`${database.host}:${database.port}`} of="address" />
    </dd>
    <dt>Plan</dt>
    <dd>
      {pack && (
        <>
          {pack.name}{" "}
          <span class="soft">{`${packText(pack)}${pack.isOffered ? "" : ", no longer offered"}`}</span>{" "}
        </>
      )}
      <a href={databasePath(database.id, "settings")}>Change</a>
    </dd>
    {database.paidUntil !== null && (
      <>
        <dt>Paid until</dt>
        <dd>
          <Day at={database.paidUntil} />
        </dd>
      </>
    )}
    <dt>Used by</dt>
    <dd>
      {database.links.length === 0 ? (
        <a href={databasePath(database.id, "connect")}>Link a site</a>
      ) : (
        database.links.map(({ siteId, variable }) => (
          <div>
            <a href={`/sites/${siteId}`}>{sites.find(({ id }) => id === siteId)?.name ?? "a site"}</a>{" "}
            <span class="soft">as</span> <code>{variable}</code>
          </div>
        ))
      )}
    </dd>
    <dt>Last backup</dt>
    <dd>
      <a href={databasePath(database.id, "backups")}>{backupsLine(latest)}</a>
    </dd>
  </dl>
);

type DatabaseEvent = Answered<"getDatabaseEvents">["data"][number];
const eventWords: Record<DatabaseEvent["kind"], string> = {
  start: "Started",
  restart: "Restarted after it exited",
  stop: "Stopped",
  exit: "Ended",
  oom: "Killed: it used more memory than its plan has",
  crash_loop: "Keeps exiting",
  disk_full: "Stores more than its plan allows",
  unhealthy: "Does not respond",
  healthy: "Responds again",
  moved: "Moved to another machine",
  restored: "Restored from a backup",
  restore_failed: "Could not be restored",
  slowed: "Writes too much to its log",
};

/** Pages show no ids of backups. */
const readable = (detail: string): string =>
  inLabels(detail).replaceAll(/\bbackup bak_[0-9a-z]+/g, "a backup");

export const databaseOverview: Screen = {
  path: "/databases/:id",
  async show({ ctx, param }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const [insight, packs, sites, backups, events] = await Promise.all([
      told(call(ctx, "getDatabaseInsight", { id: database.id })),
      listOwnPacks(ctx),
      sitesOf(ctx),
      call(ctx, "listBackups", { id: database.id, limit: 1 }),
      told(call(ctx, "getDatabaseEvents", { id: database.id })),
    ]);
    const pack = packs.find(({ id }) => id === database.packId);
    const happened = "value" in events ? events.value.data.slice(-6).toReversed() : [];
    return databaseFrame(
      opened,
      "",
      <Live id="database-overview">
        <div class="split">
          <div class="stack">
            <Card title="Running now">
              {"value" in insight ? (
                <Running queries={insight.value.activeQueries} />
              ) : (
                <NotTold database={database} reason={insight.reason} />
              )}
            </Card>
            <Card title="Most time is spent on">
              {"value" in insight ? (
                <Slow database={database} queries={insight.value.slowQueries} />
              ) : (
                <NotTold database={database} reason={insight.reason} />
              )}
            </Card>
            {happened.length > 0 && (
              <Card title="What happened">
                <table>
                  {happened.map(({ at, kind, detail }) => (
                    <tr>
                      <td>
                        {eventWords[kind]}
                        {detail !== "" && <div class="soft small">{readable(detail)}</div>}
                      </td>
                      <td class="end soft">
                        <Time at={at} />
                      </td>
                    </tr>
                  ))}
                </table>
              </Card>
            )}
          </div>
          <div class="stack">
            <Card title="Now" end={<a href={databasePath(database.id, "metrics")}>Metrics</a>}>
              <Now database={database} insight={insight} pack={pack} packs={packs} />
            </Card>
            <Card title="About">
              <Facts database={database} pack={pack} sites={sites} latest={backups.data[0]} />
            </Card>
          </div>
        </div>
      </Live>,
    );
  },
  forms: {
    async end({ ctx, param }, fields) {
      const sessionId = fields.text("sessionId");
      const to = databasePath(param("id"));
      try {
        await call(ctx, "endDatabaseSession", { id: param("id"), sessionId });
        return { to, said: `Session ${sessionId} is ended.` };
      } catch (error) {
        if (!(error instanceof AppError) || typeof error.extra["reason"] !== "string") throw error;
        return { to, said: error.extra["reason"], tone: "warn" };
      }
    },
  },
};
