import type { Activity } from "../../../protocol/api/activity.ts";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { DeploymentExplanation } from "../../../protocol/api/diagnosis.ts";
import type { SiteEvent, SiteSample } from "../../../protocol/api/running.ts";
import { SiteRollback, type Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { causeIn } from "../../domain/failed-deployment.ts";
import { parsed } from "../../domain/parsed.ts";
import { keepSuspendedDays } from "../../domain/terms.ts";
import { unpaidInvoiceOf } from "../../services/refuse-unpaid.ts";
import { listOwnPacks, type OwnPack } from "../../services/packs/list.ts";
import { ifBigger } from "../kit/plans.tsx";
import { databasesOf } from "../kit/paging.ts";
import { Act } from "../kit/form.tsx";
import { Callout, Card, Day, Live, Meter, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { inLabels } from "../kit/setting-labels.ts";
import { size } from "../kit/size.ts";
import { activityText } from "../kit/activity-words.ts";
import { money } from "../money.ts";
import { DeploymentTable } from "./deployment-table.tsx";
import { applyFix, deploy, deployChosen, FailureCard, headlineOf, placesOf, Why } from "./failure.tsx";
import { siteFrame } from "./frame.tsx";

const eventWords: Record<SiteEvent["kind"], string> = {
  start: "Started",
  restart: "Restarted after it exited",
  stop: "Stopped",
  exit: "Exited on its own",
  oom: "Killed: it used more memory than its plan has",
  crash_loop: "Keeps exiting",
  disk_full: "Stores more than its plan allows",
  unhealthy: "The health check fails",
  healthy: "The health check succeeds again",
  moved: "Moved to another machine",
  restored: "Restored from a backup",
  restore_failed: "Could not be restored",
  slowed: "Writes too much to its log",
};

/** Newest first. Events of one kind in a row are one line, and so is an end with the restart that follows it. */
function grouped(events: readonly SiteEvent[]): { event: SiteEvent; count: number }[] {
  const groups: { event: SiteEvent; count: number }[] = [];
  for (const [index, event] of events.entries()) {
    if (event.kind === "restart" && events[index + 1]?.kind === "exit") continue;
    const last = groups.at(-1);
    if (last && last.event.kind === event.kind && last.event.detail === event.detail) last.count++;
    else groups.push({ event, count: 1 });
  }
  return groups;
}

/** Ids of deployments in texts of the host as the numbers that people see; those that are no longer listed, in words. */
const readable = (detail: string, deployments: readonly Deployment[]): string =>
  deployments
    .reduce((text, { id, number }) => text.replaceAll(id, `#${number}`), inLabels(detail))
    .replaceAll(/\b[Vv]ersion dep_[0-9a-z]+/g, "An earlier version")
    .replaceAll(/\bdep_[0-9a-z]+/g, "an earlier version");

const Events = ({
  events,
  deployments,
  here,
}: {
  events: readonly SiteEvent[];
  deployments: readonly Deployment[];
  here: string;
}) => (
  <Card title="Events" end={<a href={`${here}/logs`}>Log</a>}>
    {events.length === 0 ? (
      <p class="body soft">Nothing has happened yet.</p>
    ) : (
      <table>
        {grouped(events.toReversed())
          .slice(0, 6)
          .map(({ event: { kind, at, detail }, count }) => (
            <tr>
              <td>
                {eventWords[kind]}
                {count > 1 && ` ${count} times`}
                {detail !== "" && <div class="soft small">{readable(detail, deployments)}</div>}
              </td>
              <td class="end soft">
                <Time at={at} />
              </td>
            </tr>
          ))}
      </table>
    )}
  </Card>
);

/** Samples of the last day are of a minute each. */
const traffic = ({ networkInBytes, networkOutBytes }: SiteSample): string =>
  `${size(networkInBytes + networkOutBytes)} a minute`;

const Now = ({
  sample,
  pack,
  packs,
  here,
}: {
  sample: SiteSample | undefined;
  pack: OwnPack | undefined;
  packs: readonly OwnPack[];
  here: string;
}) => (
  <Card title="Now" end={<a href={`${here}/metrics`}>Metrics</a>}>
    <div class="body meters">
      {sample === undefined ? (
        <p class="soft">Nothing was measured in the last few minutes.</p>
      ) : (
        <>
          <Meter
            label="Memory"
            used={sample.memoryMb}
            limit={pack?.memoryMb ?? null}
            bigger={ifBigger(packs, pack, ({ memoryMb }) => memoryMb, `${here}/settings#plan`)}
            said={`${Math.round(sample.memoryMb)}${pack ? ` of ${pack.memoryMb}` : ""} MB`}
          />
          <Meter
            label="Processor"
            used={sample.cpuMilli}
            limit={pack?.cpuMilli ?? null}
            bigger={ifBigger(packs, pack, ({ cpuMilli }) => cpuMilli, `${here}/settings#plan`)}
            said={`${(sample.cpuMilli / 1000).toFixed(2)}${pack ? ` of ${pack.cpuMilli / 1000}` : ""} cores`}
          />
          {sample.diskMb !== null && (
            <Meter
              label="Disk"
              used={sample.diskMb}
              limit={pack ? pack.diskGb * 1024 : null}
              bigger={ifBigger(packs, pack, ({ diskGb }) => diskGb, `${here}/settings#plan`)}
              said={`${(sample.diskMb / 1024).toFixed(1)}${pack ? ` of ${pack.diskGb}` : ""} GB`}
            />
          )}
          <Meter
            label="Network"
            used={sample.networkInBytes + sample.networkOutBytes}
            limit={null}
            said={`${traffic(sample)}, without a limit`}
          />
        </>
      )}
    </div>
  </Card>
);

const Plan = ({ site, pack }: { site: Site; pack: OwnPack | undefined }) => {
  const term = pack?.terms.find(({ months }) => months === site.billingTerm);
  return (
    <Card title="Plan" end={<a href={`/sites/${site.id}/settings#plan`}>Change</a>}>
      <dl class="sum">
        <dt>
          {pack?.name}
          {pack?.isOffered === false && <div class="soft small">no longer offered</div>}
        </dt>
        <dd>
          {pack && money(term?.amountCents ?? pack.amountCents, pack.currency)}
          {pack && (site.billingTerm === 1 ? " a month" : ` for ${site.billingTerm} months`)}
        </dd>
        <dt>Paid until</dt>
        <dd>{site.paidUntil === null ? "not paid yet" : <Day at={site.paidUntil} />}</dd>
      </dl>
    </Card>
  );
};

const domainWords = {
  ACTIVE: { tone: "good", label: "In service" },
  VERIFIED: { tone: "busy", label: "Waiting for its certificate" },
  PENDING_VERIFICATION: { tone: "warn", label: "To be verified" },
  ERROR: { tone: "bad", label: "Failed" },
} as const;

const Domains = ({ site }: { site: Site }) => (
  <Card
    title="Domains"
    end={<a href={`/sites/${site.id}/domains`}>{site.domains.length === 0 ? "Add" : "All"}</a>}
  >
    {site.domains.length === 0 ? (
      <p class="body soft">No domain of your own yet.</p>
    ) : (
      <table>
        {site.domains.slice(0, 5).map(({ displayName, domain, status }) => (
          <tr>
            <td class="any-break">
              {status === "ACTIVE" ? <a href={`https://${domain}/`}>{displayName}</a> : displayName}
              <div>
                <Status {...domainWords[status]} />
              </div>
            </td>
          </tr>
        ))}
      </table>
    )}
  </Card>
);

const outcome = (said: string): string => (said === "done" ? "" : " – refused");

const Latest = ({ rows }: { rows: readonly Activity[] }) => (
  <Card title="Activity" end={<a href="/activity">All</a>}>
    {rows.length === 0 ? (
      <p class="body soft">Nothing has been changed yet.</p>
    ) : (
      <table>
        {rows.map((row) => (
          <tr>
            <td>
              {activityText(row)}
              {outcome(row.outcome)}
            </td>
            <td class="end soft">
              <Time at={row.at} />
            </td>
          </tr>
        ))}
      </table>
    )}
  </Card>
);

/** What a site tells about itself through its host; nothing if the host does not answer. */
const orEmpty = <T,>(asked: Promise<{ data: T[] }>): Promise<T[]> =>
  asked.then(({ data }) => data).catch(() => []);

async function factsOf(ctx: Ctx, id: string) {
  const site = await call(ctx, "getSite", { id });
  const isDue = site.status === "PENDING" || site.status === "SUSPENDED";
  const [deployments, samples, events, activity, databases, packs, invoice, explained] = await Promise.all([
    call(ctx, "listDeployments", { id, limit: 10 }),
    site.hostId === null ? [] : orEmpty(call(ctx, "getSiteMetrics", { id, window: "24h" })),
    site.hostId === null ? [] : orEmpty(call(ctx, "getSiteEvents", { id })),
    call(ctx, "listActivity", { resource: id, limit: 5, only: "changes" }),
    databasesOf(ctx),
    listOwnPacks(ctx),
    isDue ? unpaidInvoiceOf(ctx, id) : null,
    site.latestDeployment?.status === "FAILED"
      ? call(ctx, "explainDeployment", { id: site.latestDeployment.id })
      : null,
  ]);
  return { site, deployments, samples, events, activity, databases, packs, invoice, explained };
}

/** What is wrong or awaited, above everything else. */
const Notices = ({
  site,
  invoice,
  deployments,
  events,
  explained,
}: {
  site: Site;
  invoice: string | null;
  deployments: readonly Deployment[];
  events: readonly SiteEvent[];
  explained: DeploymentExplanation | null;
}) => {
  const isUnhealthy =
    events.findLast(({ kind }) => kind !== "disk_full" && kind !== "slowed")?.kind === "unhealthy";
  const crashed = site.status === "FAILED" && explained === null ? site.currentDeployment?.error : null;
  const crash = crashed ? headlineOf(crashed) : null;
  const place = crashed && placesOf[causeIn(crashed)?.code ?? "app_exited"]?.(`/sites/${site.id}`);
  const earlier = deployments.find(({ status, canRollBack }) => status === "SUPERSEDED" && canRollBack);
  return (
    <>
      {invoice !== null && (
        <Callout tone="warn" title={site.status === "PENDING" ? "Waiting for its first payment" : "Not paid"}>
          <p>
            {site.status === "PENDING"
              ? "We build and start the site as soon as you pay, usually in under a minute."
              : `The site starts again as soon as its invoice is paid. Without payment, it is deleted with its data ${keepSuspendedDays} days after it was stopped.`}
          </p>
          <p class="buttons">
            <a class="button primary" href={`/invoice/${invoice}`}>
              Pay the invoice
            </a>
          </p>
        </Callout>
      )}
      {explained && (
        <FailureCard site={site} explained={explained} log={`/deployments/${explained.deployment.id}#log`} />
      )}
      {crash && (
        <Card tone="fail" title={<span class="bad">The site stopped working</span>}>
          <div class="body">
            <Why told={crash} />
            <div class="buttons spaced">
              {earlier && (
                <Act
                  id="rollback"
                  of="crashed"
                  label={`Roll back to #${earlier.number}`}
                  values={{ deployment: earlier.id }}
                />
              )}
              <a class="button" href={`/sites/${site.id}/logs`}>
                Read its log
              </a>
              {place && (
                <a class="button" href={place[0]}>
                  {place[1]}
                </a>
              )}
              <a class="button" href={`/assistant?about=${site.id}`}>
                Ask the assistant
              </a>
            </div>
          </div>
        </Card>
      )}
      {isUnhealthy && site.status === "RUNNING" && (
        <Callout tone="warn" title="The health check fails">
          <p>Visitors may see errors. The events below show what it received.</p>
        </Callout>
      )}
    </>
  );
};

/** A site at a glance, with what its owner does every day. */
export const siteOverview: Screen = {
  path: "/sites/:id{site_[0-9a-z]+}",
  async show({ ctx, param }) {
    const { site, deployments, samples, events, activity, databases, packs, invoice, explained } =
      await factsOf(ctx, param("id"));
    const here = `/sites/${site.id}`;
    const pack = packs.find(({ id }) => id === site.packId);
    const linked = databases.filter(({ links }) => links.some(({ siteId }) => siteId === site.id));
    return siteFrame(
      site,
      "Overview",
      <Live id="overview">
        <Notices
          site={site}
          invoice={invoice}
          deployments={deployments.data}
          events={events}
          explained={explained}
        />
        <div class="split">
          <div class="stack">
            <DeploymentTable
              site={site}
              deployments={deployments.data.slice(0, 5)}
              now={ctx.now()}
              end={<a href={`${here}/deployments`}>All deployments</a>}
            />
            <Events events={events} deployments={deployments.data} here={here} />
            <Latest rows={activity.data} />
          </div>
          <div class="stack">
            <Now
              sample={site.status === "RUNNING" ? samples.at(-1) : undefined}
              pack={pack}
              packs={packs}
              here={here}
            />
            <Plan site={site} pack={pack} />
            <Domains site={site} />
            <Card
              title="Databases"
              end={linked.length === 0 && <a href={`/databases/new?site=${site.id}`}>New</a>}
            >
              {linked.length === 0 ? (
                <p class="body soft">No database is linked to this site.</p>
              ) : (
                <table>
                  {linked.map(({ id, name, links }) => (
                    <tr>
                      <td>
                        <a href={`/databases/${id}`}>{name}</a>
                      </td>
                      <td class="end">
                        <code>{links.find(({ siteId }) => siteId === site.id)?.variable}</code>
                      </td>
                    </tr>
                  ))}
                </table>
              )}
            </Card>
          </div>
        </div>
      </Live>,
    );
  },
  forms: {
    deploy: deployChosen,
    rebuild: ({ ctx, param }) => deploy(ctx, param("id"), { rebuild: true }),
    async start({ ctx, param }) {
      await call(ctx, "patchSite", { id: param("id"), action: "start" });
      return { to: `/sites/${param("id")}`, said: "The site is starting." };
    },
    async stop({ ctx, param }) {
      await call(ctx, "patchSite", { id: param("id"), action: "stop" });
      return {
        to: `/sites/${param("id")}`,
        said: "The site is stopping. Visitors see a page that says so; its data and address are kept.",
      };
    },
    async restart({ ctx, param }) {
      await call(ctx, "patchSite", { id: param("id"), action: "restart" });
      return {
        to: `/sites/${param("id")}`,
        said: "The restart has been asked for. The new container takes over as soon as it responds.",
      };
    },
    async rollback({ ctx, param }, fields) {
      const { deploymentId } = await call(ctx, "rollbackSite", {
        id: param("id"),
        ...parsed(SiteRollback, { deploymentId: fields.text("deployment") }),
      });
      return { to: `/deployments/${deploymentId}` };
    },
    fix: ({ ctx }, fields) => applyFix(ctx, fields.text("deployment"), Number(fields.text("fix"))),
  },
};
