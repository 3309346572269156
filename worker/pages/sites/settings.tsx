import { PackChange, type Pack } from "../../../protocol/api/packs.ts";
import type { SiteHealth } from "../../../protocol/api/running.ts";
import type { Site, SiteSettings } from "../../../protocol/api/sites.ts";
import type { SiteVolume } from "../../../protocol/api/site-volumes.ts";
import { call } from "../../api/call.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Button, ConfirmByName, Form } from "../kit/form.tsx";
import { Callout, Card, Copied, Day, Status } from "../kit/parts.tsx";
import type { Asked, Done, Fields, Screen, View } from "../kit/screen.ts";
import { siteFrame } from "./frame.tsx";
import { PlanChoice } from "./plan-choice.tsx";
import * as forms from "./settings-forms.tsx";

const pathOf = ({ param }: Asked): string => `/sites/${param("id")}/settings`;

const Health = ({ health }: { health: SiteHealth }) => (
  <Callout
    tone={health.containers.some(({ probe }) => probe?.isHealthy) ? "good" : "warn"}
    title="The saved health check, just now"
  >
    {health.containers.length === 0 && <p>No container of the site is there.</p>}
    {health.containers.map(({ replica, running, probe, listens, exitCode }) => (
      <p>
        <Status tone={probe?.isHealthy ? "good" : "bad"} label={`Replica ${replica}`} />{" "}
        {probe
          ? `${probe.path ?? "/"} on port ${probe.port} ${probe.answer} after ${Math.round(probe.durationMs)} ms`
          : running
            ? "runs, and was not asked"
            : `does not run${exitCode === null ? "" : `; it ended with code ${exitCode}`}`}
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
  ["Bitbucket", "Repository settings → Webhooks → Add webhook. URL: this address. Trigger: Repository push."],
  [
    "Gitea, Forgejo",
    "Repository → Settings → Webhooks → Add webhook → Gitea. Target URL: this address. Trigger: push events.",
  ],
  ["A script", "curl -X POST with this address, such as at the end of your CI."],
];

const Webhook = ({ url }: { url: string | null }) => (
  <Card title="Deploy on every push" id="webhook">
    <div class="body">
      <p>
        Give this address to your Git host: a push to the site's branch then deploys. Whoever knows it can
        deploy, so treat it like a password.
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
        <p class="form-end">
          <Act id="rotate" label="Replace the address" />{" "}
          <span class="hint">The old one stops working at once.</span>
        </p>
      </details>
    </div>
  </Card>
);

const Plan = ({ site, packs }: { site: Site; packs: Pack[] }) => {
  const next = packs.find(({ id }) => id === site.nextPackId);
  return (
    <Card title="Plan" id="plan">
      <div class="body">
        {next && (
          <Callout tone="busy">
            <p>
              It changes to {next.name} once the change is paid, or at the next renewal. Choose the present
              plan to keep it.
            </p>
          </Callout>
        )}
        <Form id="plan">
          <PlanChoice packs={packs} current={site} />
          <p class="hint form-end">
            A larger plan takes effect once the rest of your term is paid: you see the invoice with its price
            first, and nothing changes if you leave it unpaid. A smaller one, or another period, takes effect
            at the next renewal
            {site.paidUntil !== null && (
              <>
                {" "}
                on <Day at={site.paidUntil} />
              </>
            )}
            .
          </p>
          <p class="form-end">
            <Button label="Change plan" />
          </p>
        </Form>
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

async function pageOf(asked: Asked, health: SiteHealth | null = null): Promise<View> {
  const { ctx, param } = asked;
  const site = await call(ctx, "getSite", { id: param("id") });
  const [{ data: packs }, volumes, webhook] = await Promise.all([
    call(ctx, "listPacks", { limit: 100 }),
    call(ctx, "listVolumes", { id: site.id }).catch(() => ({ data: [] })),
    call(ctx, "getWebhook", { id: site.id }).catch(noneIfRefused),
  ]);
  return siteFrame(
    site,
    "Settings",
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
          <forms.ScaleForm site={site} />
        </div>
      </Card>
      <Card title="What visitors get" id="ingress">
        <div class="body">
          <forms.IngressForm site={site} />
        </div>
      </Card>
      <Webhook url={webhook?.url ?? null} />
      <Plan site={site} packs={packs.filter(({ kind }) => kind === "site")} />
      <div id="delete">
        <ConfirmByName id="delete" summary="Delete this site" name={site.name} label={`Delete ${site.name}`}>
          <p>This deletes for good, and at once:</p>
          <Lost site={site} volumes={volumes.data} />
        </ConfirmByName>
      </div>
    </div>,
  );
}

const noneIfRefused = (error: unknown): null => {
  if (error instanceof AppError && error.code === "conflict") return null;
  throw error;
};

const saved = (asked: Asked, part: string, said = "Saved. Deploy to use it."): Done => ({
  to: `${pathOf(asked)}#${part}`,
  said,
});

async function save(asked: Asked, settings: SiteSettings, apply?: "now"): Promise<void> {
  await call(asked.ctx, "patchSite", {
    id: asked.param("id"),
    settings,
    ...(apply !== undefined && { apply }),
  });
}

/** Changes the plan, and says when that takes effect and what it costs. */
async function changePlan(asked: Asked, fields: Fields): Promise<Done> {
  const id = asked.param("id");
  const site = await call(asked.ctx, "getSite", { id });
  const wanted = parsed(PackChange, {
    packId: fields.text("packId"),
    ...(fields.text("billingTerm") !== "" && { billingTerm: Number(fields.text("billingTerm")) }),
  });
  const { billingTerm, packId } = wanted;
  const changed = await call(asked.ctx, "patchSite", {
    id,
    packId,
    ...(billingTerm !== undefined && billingTerm !== site.billingTerm && { billingTerm }),
  });
  if (!("takesEffect" in changed)) throw new Error("A change of the plan was answered by something else");
  if (changed.takesEffect === "on_payment" && changed.invoiceToken !== null)
    return {
      to: `/invoice/${changed.invoiceToken}`,
      said: "The larger plan takes effect once this invoice is paid. Leave it unpaid, and nothing changes.",
    };
  const said = {
    now: "The plan is changed.",
    on_payment: "The plan changes once its invoice is paid: see Billing.",
    at_renewal: "The plan changes at the next renewal.",
    never: "The plan stays as it is.",
  }[changed.takesEffect];
  return { to: `${pathOf(asked)}#plan`, said };
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
      return saved(asked, "scale", isNow ? "Saved. The site restarts with it, without a gap." : undefined);
    },
    async ingress(asked, fields) {
      const { ingress } = await call(asked.ctx, "getSite", { id: asked.param("id") });
      await save(asked, forms.readIngress(fields, ingress));
      return saved(asked, "ingress", "Saved. It takes effect at once.");
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
