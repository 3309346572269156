import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { EnvVariable, SiteSettings, siteActions, type SitePatch } from "../../protocol/api/sites.ts";
import { DomainName } from "../../protocol/api/domains.ts";
import { call } from "../api/call.ts";
import type { AppEnv } from "../app-env.ts";
import { credentialOf, type Ctx } from "../ctx.ts";
import { conflict } from "../domain/app-error.ts";
import { parsed } from "../domain/parsed.ts";
import { limitBody } from "../middleware/body.ts";
import { signedIn } from "../middleware/signed-in.ts";
import { CutOff, DeploymentEnd, DeploymentPage, SiteLogPage } from "../pages/log.tsx";
import { linesInto } from "../pages/lines-into.ts";
import { isUnderWay, SitePage } from "../pages/site.tsx";
import { followRecordedLog } from "../services/deployments/read-log.ts";
import { findWorking } from "../services/accounts/find-working.ts";
import { deploymentOwnedBy } from "../services/deployments/owned.ts";
import { deploymentView } from "../services/deployments/view.ts";
import { followSiteLog } from "../services/running/follow-log.ts";
import { unpaidInvoiceOf } from "../services/sites/refuse-unpaid.ts";
import { isBeingRestarted } from "../services/sites/is-being-restarted.ts";
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

/** Actions that a form can trigger on a site. */
const Act = z.discriminatedUnion("act", [
  z.object({ act: z.enum(siteActions) }),
  z.object({ act: z.literal("rollback"), deploymentId: z.string() }),
  z.object({
    act: z.literal("set"),
    key: EnvVariable.shape.key,
    // Forms submit line breaks as CRLF.
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
    singlePage: z
      .enum(["true", "false"])
      .transform((text) => text === "true")
      .nullable()
      .optional(),
  }),
  z.object({ act: z.literal("delete"), name: z.string() }),
]);

async function read<Schema extends z.ZodType>(c: Context<AppEnv>, schema: Schema): Promise<z.infer<Schema>> {
  const body = await c.req.parseBody();
  const given = Object.entries(body).filter(([, value]) => value !== "");
  // An empty field removes the setting.
  const none = Object.fromEntries(
    Object.keys(body)
      // A secret is not shown, so an empty field leaves it unchanged.
      .filter((name) => name !== "gitToken")
      .map((name) => [name, null]),
  );
  return parsed(schema, { ...(body["act"] === "settings" && none), ...Object.fromEntries(given) });
}

/** Data from the site's host; empty if the host does not answer. */
const orEmpty = <T,>(asked: Promise<{ data: T[] }>): Promise<T[]> =>
  asked.then(({ data }) => data).catch(() => []);

type Asked = { action: string | undefined; cursor: string | undefined };
async function shownSite(ctx: Ctx, siteId: string, { action: asked, cursor }: Asked) {
  const site = await call(ctx, "getSite", { id: siteId });
  const isDue = site.status === "PENDING" || site.status === "SUSPENDED";
  const [deployments, samples, events, invoice, isRestarting] = await Promise.all([
    call(ctx, "listDeployments", { id: site.id, limit: 10, cursor }),
    orEmpty(call(ctx, "getSiteMetrics", { id: site.id })),
    orEmpty(call(ctx, "getSiteEvents", { id: site.id })),
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

/** Runs the action and returns the page that shows its result. */
async function act(ctx: Ctx, siteId: string, form: z.infer<typeof Act>): Promise<string> {
  const here = `/sites/${siteId}`;
  const change = (asked: SitePatch) => call(ctx, "patchSite", { id: siteId, ...asked });
  switch (form.act) {
    case "rollback": {
      const { deploymentId } = await call(ctx, "rollbackSite", {
        id: siteId,
        deploymentId: form.deploymentId,
      });
      return `/deployments/${deploymentId}`;
    }
    case "set":
      await change({
        envVariables: [
          {
            key: form.key,
            value: form.value,
            scope: form.scope,
            encrypted: form.encrypted === "true" || undefined,
          },
        ],
      });
      return `${here}#variables`;
    case "unset":
      await change({ envVariables: [{ key: form.key, value: null }] });
      return `${here}#variables`;
    case "settings": {
      const { act: _act, ...settings } = form;
      await change({ settings: parsed(SiteSettings, settings) });
      return `${here}#settings`;
    }
    case "add-domain":
      await change({ domain: form.domain });
      return `${here}#domains`;
    case "verify-domain":
      await change({ domain: { verify: form.domain } });
      return `${here}#domains`;
    case "remove-domain":
      await change({ domain: { remove: form.domain } });
      return `${here}#domains`;
    case "delete": {
      const { name } = await call(ctx, "getSite", { id: siteId });
      if (form.name !== name) throw conflict(`Type the name of this site, ${name}, to confirm the deletion.`);
      await call(ctx, "deleteSite", { id: siteId });
      return "/";
    }
    case "deploy":
    case "start":
    case "stop":
    case "restart": {
      const accepted = await change({ action: form.act });
      const deploymentId = "deploymentId" in accepted ? accepted.deploymentId : undefined;
      return deploymentId === undefined ? `${here}?asked=${form.act}` : `/deployments/${deploymentId}`;
    }
  }
}

export const sitePages = new Hono<AppEnv>()
  .use(signedIn)
  .get("/:id", async (c) => {
    const asked = { action: c.req.query("asked"), cursor: cursorOf(c, "deployment") };
    return c.html(await whole(await shownSite(c.var.ctx, c.req.param("id"), asked)));
  })
  .post("/:id", limitBody, async (c) =>
    c.redirect(await act(c.var.ctx, c.req.param("id"), await read(c, Act)), 303),
  )
  .get("/:id/log", async (c) => {
    const { ctx } = c.var;
    const site = await call(ctx, "getSite", { id: c.req.param("id") });
    const events = await followSiteLog(ctx, { id: site.id, follow: "1", tail: 500 });
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
    const events = await followRecordedLog(ctx, row, 0);
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
    const { id } = await call(c.var.ctx, "cancelDeployment", { id: c.req.param("id") });
    return c.redirect(`/deployments/${id}`, 303);
  });

/** Disables compression, which would hold back lines until a buffer fills. */
const streamed = (c: Context<AppEnv>, page: ReadableStream<Uint8Array>) =>
  c.body(page, 200, { "Content-Type": "text/html; charset=UTF-8", "Content-Encoding": "Identity" });
