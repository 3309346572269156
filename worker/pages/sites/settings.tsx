import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { SiteHealth } from "../../../protocol/api/running.ts";
import type { Site, SiteSettings } from "../../../protocol/api/sites.ts";
import type { SiteVolume } from "../../../protocol/api/site-volumes.ts";
import { call } from "../../api/call.ts";
import { renewalLink } from "../../billing/terms/renewal-link.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { listOwnPacks, type OwnPack } from "../../services/packs/list.ts";
import { ChangePlan, chosenPlan, planChanged } from "../kit/change-plan.tsx";
import { Act, ConfirmByName, Telling } from "../kit/form.tsx";
import { Callout, Card, Copied, Day, Status, Time } from "../kit/parts.tsx";
import type { Asked, Done, Fields, Screen, View } from "../kit/screen.ts";
import { siteFrame, whenUsed } from "./frame.tsx";
import { IngressForm, readIngress } from "./ingress-form.tsx";
import * as forms from "./settings-forms.tsx";

const pathOf = ({ param }: Asked): string => `/sites/${param("id")}/settings`;

const Health = ({ health }: { health: SiteHealth }) => (
  <Callout
    tone={health.containers.some(({ probe }) => probe?.isHealthy) ? "good" : "warn"}
    title="The saved health check, just now"
  >
    {health.containers.length === 0 && <p>The site has no containers.</p>}
    {health.containers.map(({ replica, running, probe, listens, exitCode }) => (
      <p>
        <Status tone={probe?.isHealthy ? "good" : "bad"} label={`Replica ${replica}`} />{" "}
        {probe
          ? `${probe.path ?? "/"} on port ${probe.port} ${probe.answer} after ${Math.round(probe.durationMs)} ms`
          : running
            ? "running, but not checked"
            : `not running${exitCode === null ? "" : `; it exited with code ${exitCode}`}`}
        {listens.length > 0 && `. It listens on ${listens.map(({ port }) => port).join(", ")}.`}
      </p>
    ))}
  </Callout>
);

const hostsOfGit: readonly [name: string, steps: string][] = [
  [
    "GitHub",
    "Repository → Settings → Webhooks → Add webhook. Payload URL: this address. Content type: application/json. Just the push event.",
  ],
  ["GitLab", "Project → Settings → Webhooks → Add new webhook. URL: this address. Trigger: Push events."],
  [
    "Bitbucket",
    "Repository settings → Webhooks → Add webhook. URL: this address. Trigger: Repository push. Set a branch under Source as well: Bitbucket does not say which one is the default, so without it a push to any branch deploys.",
  ],
  [
    "Gitea, Forgejo",
    "Repository → Settings → Webhooks → Add webhook → Gitea. Target URL: this address. Trigger: push events.",
  ],
  ["A script", "curl -X POST with this address, such as at the end of your CI."],
];

/** `last`: the newest deployment of a push. */
const Webhook = ({ url, last }: { url: string | null; last: Deployment | undefined }) => (
  <Card title="Deploy on every push" id="webhook">
    <div class="body">
      <p>
        Give this address to your Git host: a push to the site's branch then deploys. Whoever knows it can
        deploy, so treat it like a password.
      </p>
      <p class="soft">
        {last === undefined ? (
          "No push has deployed this site yet: push a commit to its branch. A ping, which some Git hosts send as a test, deploys nothing."
        ) : (
          <>
            The last push that arrived started{" "}
            <a href={`/deployments/${last.id}`}>deployment #{last.number}</a>, <Time at={last.createdAt} />.
          </>
        )}
      </p>
      <details class="more">
        <summary>Show the address</summary>
        <p class="form-end">
          {url === null ? (
            "It was made with a key that this installation no longer has, so it cannot be shown. Replace it to get a new one."
          ) : (
            <Copied text={url} of="the deploy webhook" />
          )}
        </p>
        <dl class="form-end">
          {hostsOfGit.map(([name, steps]) => (
            <>
              <dt>{name}</dt>
              <dd>{steps}</dd>
            </>
          ))}
        </dl>
        <div class="form-end">
          <Act id="rotate" label="Replace the address" />{" "}
          <span class="hint">The old one stops working immediately.</span>
        </div>
      </details>
    </div>
  </Card>
);

type PlanOf = { site: Site; packs: readonly OwnPack[]; renewal: string | null; now: Date };
const Plan = ({ site, packs, renewal, now }: PlanOf) => {
  const next = packs.find(({ id }) => id === site.nextPackId);
  return (
    <Card title="Plan" id="plan">
      <div class="body">
        {next && (
          <Callout tone="busy">
            <p>
              It changes to {next.name} once the change is paid, or at the next renewal. Choose the current
              plan to keep it.
            </p>
          </Callout>
        )}
        {site.paidUntil === null ? (
          <p class="soft">
            The plan can be changed once the first invoice is paid. <a href="/billing">Billing</a>
          </p>
        ) : (
          <ChangePlan packs={packs} term={site} renewal={renewal} now={now} isLegendHidden />
        )}
      </div>
    </Card>
  );
};

const sizeOf = ({ sizeMb }: SiteVolume): string => (sizeMb === null ? "" : `, ${Math.round(sizeMb)} MB`);

const Lost = ({ site, volumes }: { site: Site; volumes: SiteVolume[] }) => (
  <ul>
    <li>the site with its versions, variables, logs and metrics;</li>
    {volumes.length > 0 && (
      <li>
        <strong>the data in {volumes.map((volume) => `${volume.name}${sizeOf(volume)}`).join("; ")}</strong>,
        of which there is no backup;
      </li>
    )}
    {site.domains.length > 0 && (
      <li>
        its domains, which stop working: {site.domains.map(({ displayName }) => displayName).join(", ")};
      </li>
    )}
    {site.paidUntil !== null && (
      <li>
        the remaining term until <Day at={site.paidUntil} />, which is not refunded.
      </li>
    )}
  </ul>
);

const partsOf = ({ deployType }: Site): [id: string, label: string][] => [
  ["source", "Source"],
  ...(deployType === "github" ? [["build", "Build"] as [string, string]] : []),
  ["run", "Run"],
  ["scale", "Replicas and health"],
  ["ingress", "What visitors get"],
  ["webhook", "Deploy on every push"],
  ["plan", "Plan"],
  ["delete", "Delete"],
];

async function pageOf(asked: Asked, health: SiteHealth | null = null): Promise<View> {
  const { ctx, param, query } = asked;
  const site = await call(ctx, "getSite", { id: param("id") });
  const [packs, renewal, volumes, webhook, pushed] = await Promise.all([
    listOwnPacks(ctx),
    renewalLink(ctx, site.id),
    call(ctx, "listVolumes", { id: site.id }).catch(() => ({ data: [] })),
    call(ctx, "getWebhook", { id: site.id }).catch(noneIfRefused),
    call(ctx, "listDeployments", { id: site.id, limit: 1, trigger: "webhook" }),
  ]);
  const pack = packs.find(({ id }) => id === site.packId);
  const told = forms.toldReplicas(pack);
  return siteFrame(
    site,
    "Settings",
    <div class="with-parts">
      <nav class="topics" aria-label="Parts of the settings">
        {partsOf(site).map(([id, label]) => (
          <a href={`#${id}`}>{label}</a>
        ))}
      </nav>
      <div class="stack">
        <Card title="Source" id="source">
          <div class="body">
            <forms.SourceForm site={site} />
          </div>
        </Card>
        {site.deployType === "github" && (
          <Card title="Build" id="build">
            <div class="body">
              <forms.BuildForm site={site} />
            </div>
          </Card>
        )}
        <Card title="Run" id="run">
          <div class="body">
            <forms.RunForm site={site} />
          </div>
        </Card>
        <Card title="Replicas, health and restarts" id="scale">
          <div class="body">
            {health && <Health health={health} />}
            <forms.ScaleForm site={site} pack={pack} />
            {told && <Telling told={told} value={query("replicas")} />}
          </div>
        </Card>
        <Card title="What visitors get" id="ingress">
          <div class="body">
            <IngressForm site={site} />
          </div>
        </Card>
        <Webhook url={webhook?.url ?? null} last={pushed.data[0]} />
        <Plan
          site={site}
          packs={packs.filter(({ kind }) => kind === "site")}
          renewal={renewal}
          now={ctx.now()}
        />
        <div id="delete">
          <ConfirmByName
            id="delete"
            summary="Delete this site"
            name={site.name}
            label={`Delete ${site.name}`}
          >
            <p>This deletes permanently and immediately:</p>
            <Lost site={site} volumes={volumes.data} />
          </ConfirmByName>
        </div>
      </div>
    </div>,
  );
}

const noneIfRefused = (error: unknown): null => {
  if (error instanceof AppError && error.code === "conflict") return null;
  throw error;
};

const saved = async (asked: Asked, part: string, said?: string): Promise<Done> => ({
  to: `${pathOf(asked)}#${part}`,
  said: said ?? `Saved. ${await whenUsed(asked)}`,
});

async function save(asked: Asked, settings: SiteSettings, apply?: "now"): Promise<void> {
  await call(asked.ctx, "patchSite", {
    id: asked.param("id"),
    settings,
    ...(apply !== undefined && { apply }),
  });
}

async function changePlan(asked: Asked, fields: Fields): Promise<Done> {
  const changed = await call(asked.ctx, "patchSite", { id: asked.param("id"), ...chosenPlan(fields) });
  const back = `${pathOf(asked)}#plan`;
  return "takesEffect" in changed ? planChanged(changed, back) : { to: back };
}

export const siteSettings: Screen = {
  path: "/sites/:id/settings",
  show: (asked) => pageOf(asked),
  forms: {
    async source(asked, fields) {
      const { deployType } = await call(asked.ctx, "getSite", { id: asked.param("id") });
      await save(asked, forms.readSource[deployType](fields));
      return saved(asked, "source");
    },
    async build(asked, fields) {
      await save(asked, forms.readBuild(fields));
      return saved(asked, "build");
    },
    async run(asked, fields) {
      await save(asked, forms.readRun(fields));
      return saved(asked, "run");
    },
    async scale(asked, fields) {
      if (fields.text("try") === "true")
        return {
          again: await pageOf(asked, await call(asked.ctx, "getSiteHealth", { id: asked.param("id") })),
        };
      const isNow = fields.text("apply") === "now";
      await save(asked, forms.readScale(fields), isNow ? "now" : undefined);
      return saved(asked, "scale", isNow ? "Saved. The site restarts with it, without downtime." : undefined);
    },
    async ingress(asked, fields) {
      const { ingress } = await call(asked.ctx, "getSite", { id: asked.param("id") });
      await save(asked, readIngress(fields, ingress));
      return saved(asked, "ingress", "Saved. It takes effect immediately.");
    },
    async rotate(asked) {
      await call(asked.ctx, "rotateWebhook", { id: asked.param("id") });
      return saved(asked, "webhook", "The address is replaced. Give the new one to your Git host.");
    },
    plan: changePlan,
    async delete({ ctx, param }, fields) {
      const { id, name } = await call(ctx, "getSite", { id: param("id") });
      if (fields.text("confirm").trim() !== name)
        throw invalid("confirm", `Type ${name} to confirm the deletion`);
      await call(ctx, "deleteSite", { id });
      return { to: "/sites", said: `${name} is being deleted.` };
    },
  },
};
