import { call } from "../../api/call.ts";
import { SiteCreate } from "../../../protocol/api/sites.ts";
import { SourceInspect } from "../../../protocol/api/sources.ts";
import type { Ctx } from "../../ctx.ts";
import { parsed } from "../../domain/parsed.ts";
import { reachOfSite, siteId, siteNamed } from "../resources.ts";
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
  | "scale_site";

/**
 * Creates a site from a model's or a person's arguments, as strictly as the API does. @throws AppError
 * invalid_request
 */
async function create(ctx: Ctx, asked: Record<string, unknown>) {
  const created = await call(ctx, "createSite", parsed(SiteCreate, asked));
  return { ...created, payAt: `${ctx.config.SITE_URL}/invoice/${created.invoiceToken}` };
}

const act = async (ctx: Ctx, site: string, action: "start" | "stop" | "restart") =>
  call(ctx, "patchSite", { id: await siteId(ctx, site), action });

export const siteTools: Tools<Names> = {
  list_sites: {
    async run(ctx, { limit = 50 }) {
      const { data, nextCursor } = await call(ctx, "listSites", { limit });
      return {
        sites: data.map(({ id, name, status, url }) => ({ id, name, status, url })),
        more: nextCursor !== null,
      };
    },
  },
  get_site: {
    async run(ctx, { site }) {
      const { envVariables, ...shown } = await siteNamed(ctx, site);
      return { ...shown, variables: envVariables.map(({ key }) => key) };
    },
  },
  detect_framework: { run: (ctx, input) => call(ctx, "inspectSource", parsed(SourceInspect, input)) },
  create_site: { run: (ctx, input) => create(ctx, input) },
  update_site_settings: {
    run: async (ctx, { site, settings }) => call(ctx, "patchSite", { id: await siteId(ctx, site), settings }),
  },
  start_site: { run: (ctx, { site }) => act(ctx, site, "start") },
  stop_site: {
    run: (ctx, { site }) => act(ctx, site, "stop"),
    async consequence(ctx, { site }) {
      const found = await siteNamed(ctx, site);
      return {
        summary: `Stop the site ${found.name}: visitors receive 503 until it is started. ${reachOfSite(found)}`,
        version: found.updatedAt,
      };
    },
  },
  restart_site: { run: (ctx, { site }) => act(ctx, site, "restart") },
  set_maintenance_mode: {
    run: async (ctx, { site, on, message }) =>
      call(ctx, "patchSite", {
        id: await siteId(ctx, site),
        settings: { ingress: { maintenance: on ? { message } : null } },
      }),
    async consequence(ctx, { site, on }) {
      if (!on) return null;
      const found = await siteNamed(ctx, site);
      return {
        summary: `Show visitors of the site ${found.name} a maintenance page: they receive 503 until it is turned off. ${reachOfSite(found)}`,
        version: found.updatedAt,
      };
    },
  },
  delete_site: {
    run: async (ctx, { site }) => call(ctx, "deleteSite", { id: await siteId(ctx, site) }),
    async consequence(ctx, { site }) {
      const found = await siteNamed(ctx, site);
      return {
        summary: `Delete the site ${found.name} permanently, with its containers, images, volumes, variables and domains. ${reachOfSite(found)}`,
        version: found.updatedAt,
      };
    },
  },
  clone_site: {
    async run(ctx, { site, name, packId, billingTerm }) {
      const from = await siteNamed(ctx, site);
      const { deployType, githubUrl, image, branch, port, buildCommand, startCommand } = from;
      const optional = { branch, buildCommand, startCommand };
      const created = await create(ctx, {
        name,
        deployType,
        ...(deployType === "github" ? { githubUrl } : { image }),
        port,
        packId: packId ?? from.packId,
        billingTerm: billingTerm ?? 1,
        ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)),
      });
      const plain = from.envVariables.flatMap((one) =>
        one.value === null ? [] : [{ key: one.key, value: one.value, scope: one.scope }],
      );
      if (plain.length > 0) await call(ctx, "patchSite", { id: created.siteId, envVariables: plain });
      const secretsToSet = from.envVariables.filter(({ value }) => value === null).map(({ key }) => key);
      return { ...created, secretsToSet };
    },
  },
  set_health_check: {
    run: async (ctx, { site, path }) =>
      call(ctx, "patchSite", { id: await siteId(ctx, site), settings: { healthCheckPath: path } }),
  },
  scale_site: {
    run: async (ctx, { site, replicas }) =>
      call(ctx, "patchSite", { id: await siteId(ctx, site), settings: { replicas } }),
  },
};
