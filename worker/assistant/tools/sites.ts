import { call } from "../call.ts";
import type { SiteCreate, SiteInFull, SiteSettings } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { asksAboutSite, changeSite, pageFor, payAt, refuseInVain, siteId, siteNamed } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names =
  | "list_sites"
  | "get_site"
  | "create_site"
  | "detect_framework"
  | "update_site_settings"
  | "start_site"
  | "stop_site"
  | "restart_site"
  | "set_maintenance_mode"
  | "delete_site"
  | "clone_site"
  | "set_health_check"
  | "set_lifecycle_policy"
  | "run_health_check"
  | "diagnose_site"
  | "probe_url"
  | "scale_site";

/** Of the variables only the keys: their values are asked for by themselves. */
const shown = ({ envVariables, ...site }: SiteInFull) => ({
  ...site,
  variables: envVariables.map(({ key }) => key),
});

const act = async (ctx: Ctx, site: string, action: "start" | "stop" | "restart") =>
  changeSite<"action">(ctx, await siteId(ctx, site), { action });

/** Applied to the version in service at once, if there is one, and otherwise by the next deployment. */
async function setNow(ctx: Ctx, name: string, settings: SiteSettings) {
  const { id, status, currentDeployment } = await siteNamed(ctx, name);
  const isThere = currentDeployment !== null && (status === "RUNNING" || status === "STOPPED");
  const { healthCheckPath, healthCheck, replicas, lifecycle } = await changeSite<"settings">(ctx, id, {
    settings,
    ...(isThere && { apply: "now" }),
  });
  const applied = isThere ? ("now" as const) : ("by the next deployment" as const);
  return { healthCheckPath, healthCheck, replicas, lifecycle, applied };
}

export const siteTools: Tools<Names> = {
  list_sites: {
    async run(ctx, { status, ...asked }) {
      const read = (cursor?: string) => call(ctx, "listSites", { status, limit: 100, cursor });
      const { data, nextCursor } = await pageFor(read, asked);
      return {
        sites: data.map((one) => ({ id: one.id, name: one.name, status: one.status, url: one.url })),
        nextCursor,
      };
    },
  },
  get_site: {
    async run(ctx, { site }) {
      const found = await siteNamed(ctx, site);
      const [unhealthy, packs] = await Promise.all([
        call(ctx, "listUnhealthy", {}),
        call(ctx, "listPacks", { limit: 100 }),
      ]);
      const pack = packs.data.find(({ id }) => id === found.packId);
      const term = pack?.terms.find(({ months }) => months === found.billingTerm);
      return {
        // First, as a long result is cut at its end.
        problem: unhealthy.data.find(({ id }) => id === found.id)?.reason ?? null,
        costs:
          pack && term
            ? {
                pack: pack.name,
                months: term.months,
                amountCents: term.amountCents,
                currency: pack.currency,
              }
            : null,
        ...shown(found),
      };
    },
  },
  detect_framework: { run: (ctx, input) => call(ctx, "inspectSource", input) },
  create_site: {
    async run(ctx, input) {
      // Which fields go with which type is for the operation's schema to say.
      const created = await call(ctx, "createSite", input as SiteCreate);
      return { ...created, payAt: payAt(ctx, created.invoiceToken) };
    },
  },
  update_site_settings: {
    run: async (ctx, { site, settings }) =>
      shown(await changeSite<"settings">(ctx, await siteId(ctx, site), { settings })),
  },
  start_site: { run: (ctx, { site }) => act(ctx, site, "start") },
  stop_site: {
    run: (ctx, { site }) => act(ctx, site, "stop"),
    consequence: (ctx, { site }) =>
      asksAboutSite(ctx, site, ({ name, status }) => {
        refuseInVain("stop", "site", status, siteEvents.stopRequested);
        return `Stop the site ${name}: visitors receive 503 until it is started.`;
      }),
  },
  restart_site: { run: (ctx, { site }) => act(ctx, site, "restart") },
  set_maintenance_mode: {
    run: async (ctx, { site, on, message }) => {
      const ingress = { maintenance: on ? { message } : null };
      return (await changeSite<"settings">(ctx, await siteId(ctx, site), { settings: { ingress } })).ingress;
    },
    async consequence(ctx, { site, on, message }) {
      if (!on) return null;
      const says = message === undefined ? "" : ` It says: “${message}”`;
      return asksAboutSite(
        ctx,
        site,
        ({ name }) =>
          `Show visitors of the site ${name} a maintenance page: they receive 503 until it is turned off.${says}`,
      );
    },
  },
  delete_site: {
    run: async (ctx, { site, deleteVolumes = false }) =>
      call(ctx, "deleteSite", { id: await siteId(ctx, site), deleteVolumes: deleteVolumes ? "1" : "0" }),
    consequence: (ctx, { site, deleteVolumes = false }) =>
      asksAboutSite(ctx, site, ({ name }, volumes) => {
        if (!deleteVolumes && volumes.length > 0)
          throw conflict(
            `${name} has volumes (${volumes.join(", ")}), whose data would be lost: ask the person, then call this with deleteVolumes.`,
          );
        return `Delete the site ${name} permanently, with its containers, images, volumes, variables and domains.`;
      }),
  },
  clone_site: {
    async run(ctx, { site, ...wanted }) {
      const created = await call(ctx, "cloneSite", { id: await siteId(ctx, site), ...wanted });
      return { ...created, payAt: payAt(ctx, created.invoiceToken) };
    },
  },
  set_health_check: {
    async run(ctx, { site, path, check }) {
      if (path === undefined && check === undefined) throw invalid("path", "either path or check, or both");
      return setNow(ctx, site, {
        ...(path !== undefined && { healthCheckPath: path }),
        ...(check !== undefined && { healthCheck: check }),
      });
    },
  },
  run_health_check: {
    run: async (ctx, { site }) => call(ctx, "getSiteHealth", { id: await siteId(ctx, site) }),
  },
  diagnose_site: { run: async (ctx, { site }) => call(ctx, "diagnoseSite", { id: await siteId(ctx, site) }) },
  probe_url: {
    run: async (ctx, { site, ...asked }) => call(ctx, "probeSite", { id: await siteId(ctx, site), ...asked }),
  },
  set_lifecycle_policy: {
    run: (ctx, { site, policy }) => setNow(ctx, site, { lifecycle: policy }),
  },
  scale_site: { run: (ctx, { site, replicas }) => setNow(ctx, site, { replicas }) },
};
