import type { IngressChange } from "../../../protocol/api/ingress.ts";
import { call } from "../call.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { asks, changeSite, siteId, siteNamed } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names =
  | "list_domains"
  | "add_domain"
  | "verify_domain"
  | "remove_domain"
  | "get_certificate"
  | "renew_certificate"
  | "set_primary_domain"
  | "set_redirect_rules"
  | "set_access_protection";

/** Answers what the ingress does for the site now. */
async function setIngress(ctx: Ctx, site: string, ingress: IngressChange) {
  if (Object.keys(ingress).length === 0)
    throw conflict("Say what to change: a name and password, or addresses.");
  return (await changeSite<"settings">(ctx, await siteId(ctx, site), { settings: { ingress } })).ingress;
}

export const domainTools: Tools<Names> = {
  list_domains: {
    run: async (ctx, { site }) => (await call(ctx, "listDomains", { id: await siteId(ctx, site) })).data,
  },
  add_domain: {
    run: async (ctx, { site, ...wanted }) =>
      call(ctx, "createDomain", { id: await siteId(ctx, site), ...wanted }),
  },
  verify_domain: {
    run: async (ctx, { site, domain }) =>
      call(ctx, "verifyDomain", { id: await siteId(ctx, site), name: domain }),
  },
  remove_domain: {
    run: async (ctx, { site, domain }) =>
      call(ctx, "deleteDomain", { id: await siteId(ctx, site), name: domain }),
    async consequence(ctx, { site, domain }) {
      const found = await siteNamed(ctx, site);
      const known = found.domains.find((one) => one.domain === domain);
      if (!known)
        throw conflict(`${domain} is no domain of the site ${found.name}: list_domains names those it has.`);
      return asks(
        `Remove the domain ${domain} from the site ${found.name}: visitors can no longer reach it by that name.`,
        [found.id, found.updatedAt, known.id],
      );
    },
  },
  get_certificate: {
    async run(ctx, { site, domain: name }) {
      const id = await siteId(ctx, site);
      const { domain, status, problems, certificate, checkedAt } = await call(ctx, "getDomain", { id, name });
      return { domain, status, problems, certificate, checkedAt };
    },
  },
  renew_certificate: {
    async run(ctx, { site, domain: name }) {
      const id = await siteId(ctx, site);
      const { domain, status, problems, certificate } = await call(ctx, "renewDomain", { id, name });
      return { domain, status, problems, certificate };
    },
  },
  set_primary_domain: {
    run: (ctx, { site, domain }) => setIngress(ctx, site, { primaryDomain: domain }),
  },
  set_redirect_rules: {
    run: (ctx, { site, rules }) => setIngress(ctx, site, { redirects: rules.length > 0 ? rules : null }),
  },
  set_access_protection: {
    run: (ctx, { site, auth, allow }) =>
      setIngress(ctx, site, {
        ...(auth !== undefined && { basicAuth: auth }),
        ...(allow !== undefined && { allow }),
      }),
  },
};
