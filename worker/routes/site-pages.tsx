import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { DomainName, EnvVariable, SiteCreate, SiteSettings, siteActions } from "../../protocol/api/sites.ts";
import type { AppEnv } from "../app-env.ts";
import { credentialOf, type Ctx } from "../ctx.ts";
import { conflict } from "../domain/app-error.ts";
import { limitBody, refusalBy } from "../middleware/body.ts";
import { signedIn } from "../middleware/signed-in.ts";
import { CutOff, DeploymentEnd, DeploymentPage, SiteLogPage } from "../pages/log.tsx";
import { linesInto } from "../pages/lines-into.ts";
import { NewSitePage } from "../pages/new-site.tsx";
import { isUnderWay, SitePage } from "../pages/site.tsx";
import { findWorking } from "../services/accounts/find-working.ts";
import { cancelDeployment } from "../services/deployments/cancel.ts";
import { listDeployments } from "../services/deployments/list.ts";
import { deploymentOwnedBy } from "../services/deployments/owned.ts";
import { deploymentView } from "../services/deployments/view.ts";
import { changeDomain } from "../services/domains/change.ts";
import { listPacks } from "../services/packs/list.ts";
import { siteEventsOf } from "../services/running/events.ts";
import { followSiteLog } from "../services/running/follow-log.ts";
import { siteMetrics } from "../services/running/metrics.ts";
import { actOnSite } from "../services/sites/act.ts";
import { createSite } from "../services/sites/create.ts";
import { getSite } from "../services/sites/get.ts";
import { unpaidInvoiceOf } from "../services/sites/refuse-unpaid.ts";
import { removeSite } from "../services/sites/remove.ts";
import { rollbackSite } from "../services/sites/rollback.ts";
import { isBeingRestarted } from "../services/sites/is-being-restarted.ts";
import { setSiteSettings } from "../services/sites/set-settings.ts";
import { setSiteEnv } from "../services/sites/set-env.ts";
import { followLog } from "./answer-log.ts";
import { cursorOf } from "./page-cursor.ts";

type Page = Parameters<typeof html>[1];
const whole = async (page: Page): Promise<string> => String(await html`<!doctype html>${page}`);
const fragment = async (part: Page): Promise<string> => String(await html`${part}`);

const PastedAddress = z.string().transform((text) =>
  text
    .trim()
    .replace(/^https?:\/\//, "")
    .replace(/\/$/, ""),
);

/** What a form may do with a site. */
const Act = z.discriminatedUnion("act", [
  z.object({ act: z.enum(siteActions) }),
  z.object({ act: z.literal("rollback"), deploymentId: z.string() }),
  z.object({
    act: z.literal("set"),
    key: EnvVariable.shape.key,
    // A form sends each end of a line as two characters.
    value: z
      .string()
      .default("")
      .transform((text) => text.replaceAll("\r\n", "\n")),
    encrypted: z.literal("true").optional(),
    scope: EnvVariable.shape.scope,
  }),
  z.object({ act: z.literal("unset"), key: EnvVariable.shape.key }),
  z.object({ act: z.enum(["add-domain", "verify-domain", "remove-domain"]), domain: DomainName }),
  z.looseObject({
    act: z.literal("settings"),
    githubUrl: PastedAddress.optional(),
    port: z.coerce.number().optional(),
    startTimeoutSeconds: z.coerce.number().nullable().optional(),
  }),
  z.object({ act: z.literal("delete"), name: z.string() }),
]);

/** As people paste addresses, and as forms send numbers. */
const NewSite = z
  .object({
    githubUrl: PastedAddress.optional(),
    port: z.coerce.number().optional(),
    billingTerm: z.coerce.number().optional(),
  })
  .loose()
  .pipe(SiteCreate);

async function read<Schema extends z.ZodType>(c: Context<AppEnv>, schema: Schema): Promise<z.infer<Schema>> {
  const body = await c.req.parseBody();
  const given = Object.entries(body).filter(([, value]) => value !== "");
  // A setting whose field is empty is taken away.
  const none = Object.fromEntries(
    Object.keys(body)
      // A secret is not shown, so its field is empty where it is to stay.
      .filter((name) => name !== "gitToken")
      .map((name) => [name, null]),
  );
  return parsed(schema, { ...(body["act"] === "settings" && none), ...Object.fromEntries(given) });
}

function parsed<Schema extends z.ZodType>(schema: Schema, given: unknown): z.infer<Schema> {
  const form = schema.safeParse(given);
  if (form.success) return form.data;
  throw refusalBy(form.error);
}

/** What a site's host tells, and nothing where it does not. */
const told = <T,>(asked: Promise<{ data: T[] }>): Promise<T[]> =>
  asked.then(({ data }) => data).catch(() => []);

type Asked = { action: string | undefined; cursor: string | undefined };
async function shownSite(ctx: Ctx, siteId: string, { action: asked, cursor }: Asked) {
  const site = await getSite(ctx, siteId);
  const isDue = site.status === "PENDING" || site.status === "SUSPENDED";
  const [deployments, samples, events, invoice, isRestarting] = await Promise.all([
    listDeployments(ctx, site.id, { limit: 10, cursor }),
    told(siteMetrics(ctx, site.id)),
    told(siteEventsOf(ctx, site.id)),
    isDue ? unpaidInvoiceOf(ctx, site.id) : null,
    asked === "restart" && isBeingRestarted(ctx, site.id),
  ]);
  return (
    <SitePage
      site={site}
      deployments={deployments.data}
      next={deployments.nextCursor}
      samples={samples}
      now={ctx.now()}
      events={events.slice(-10)}
      asked={asked === "restart" && !isRestarting ? undefined : asked}
      payAt={invoice === null ? null : `/invoice/${invoice}`}
    />
  );
}

/** Does it, and answers the page to see it on. */
async function act(ctx: Ctx, siteId: string, form: z.infer<typeof Act>): Promise<string> {
  const here = `/sites/${siteId}`;
  switch (form.act) {
    case "rollback": {
      const { deploymentId } = await rollbackSite(ctx, siteId, form.deploymentId);
      return `/deployments/${deploymentId}`;
    }
    case "set":
      await setSiteEnv(ctx, siteId, [{ ...form, encrypted: form.encrypted === "true" || undefined }]);
      return `${here}#variables`;
    case "unset":
      await setSiteEnv(ctx, siteId, [{ key: form.key, value: null }]);
      return `${here}#variables`;
    case "settings": {
      const { act: _act, ...settings } = form;
      await setSiteSettings(ctx, siteId, parsed(SiteSettings, settings));
      return `${here}#settings`;
    }
    case "add-domain":
      await changeDomain(ctx, siteId, form.domain);
      return `${here}#domains`;
    case "verify-domain":
      await changeDomain(ctx, siteId, { verify: form.domain });
      return `${here}#domains`;
    case "remove-domain":
      await changeDomain(ctx, siteId, { remove: form.domain });
      return `${here}#domains`;
    case "delete": {
      const { name } = await getSite(ctx, siteId);
      if (form.name !== name) throw conflict(`The name of this site is ${name}: type it to delete the site.`);
      await removeSite(ctx, siteId);
      return "/";
    }
    case "deploy":
    case "start":
    case "stop":
    case "restart": {
      const { deploymentId } = await actOnSite(ctx, siteId, { action: form.act });
      return deploymentId === undefined ? `${here}?asked=${form.act}` : `/deployments/${deploymentId}`;
    }
  }
}

export const sitePages = new Hono<AppEnv>()
  .use(signedIn)
  .get("/new", async (c) => {
    const { data } = await listPacks(c.var.ctx, { limit: 100 });
    return c.html(await whole(<NewSitePage packs={data.filter(({ kind }) => kind === "site")} />));
  })
  .post("/", limitBody, async (c) => {
    const { invoiceToken } = await createSite(c.var.ctx, await read(c, NewSite));
    return c.redirect(`/invoice/${invoiceToken}`, 303);
  })
  .get("/:id", async (c) => {
    const asked = { action: c.req.query("asked"), cursor: cursorOf(c, "deployment") };
    return c.html(await whole(await shownSite(c.var.ctx, c.req.param("id"), asked)));
  })
  .post("/:id", limitBody, async (c) =>
    c.redirect(await act(c.var.ctx, c.req.param("id"), await read(c, Act)), 303),
  )
  .get("/:id/log", async (c) => {
    const { ctx } = c.var;
    const site = await getSite(ctx, c.req.param("id"));
    const events = await followSiteLog(ctx, site.id, { follow: "1", tail: 500 }, undefined);
    const mark = ctx.newMark();
    const page = await whole(<SiteLogPage site={site} mark={mark} />);
    return streamed(
      c,
      linesInto(page, mark, events, () => fragment(<CutOff />)),
    );
  });

export const deploymentPages = new Hono<AppEnv>()
  .use(signedIn)
  .get("/:id", async (c) => {
    const { ctx } = c.var;
    const row = await deploymentOwnedBy(ctx, c.req.param("id"));
    const deployment = deploymentView(row);
    const events = await followLog(c, row, 0);
    const mark = ctx.newMark();
    const page = await whole(<DeploymentPage deployment={deployment} mark={mark} />);
    return streamed(
      c,
      linesInto(page, mark, events, async () => {
        if (!isUnderWay(deployment)) return "";
        const working = await findWorking(ctx, [credentialOf(ctx)]);
        if (working.size === 0) return fragment(<CutOff />);
        const ended = deploymentView(await deploymentOwnedBy(ctx, deployment.id));
        return fragment(isUnderWay(ended) ? <CutOff /> : <DeploymentEnd deployment={ended} />);
      }),
    );
  })
  .post("/:id/cancel", async (c) => {
    const { id } = await cancelDeployment(c.var.ctx, c.req.param("id"));
    return c.redirect(`/deployments/${id}`, 303);
  });

/** Not compressed on its way, which would hold lines back until many have come. */
const streamed = (c: Context<AppEnv>, page: ReadableStream<Uint8Array>) =>
  c.body(page, 200, { "Content-Type": "text/html; charset=UTF-8", "Content-Encoding": "Identity" });
