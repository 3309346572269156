import { Hono } from "hono";
import { setCookie } from "hono/cookie";
import * as z from "zod";
import { isSecure } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { ownPath } from "../domain/own-path.ts";
import { formToAuth } from "../middleware/auth.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { limitAddress } from "../middleware/limit.ts";
import { say } from "../middleware/page.ts";
import { requireSameOrigin } from "../middleware/session.ts";
import { personOf, toSignIn } from "../middleware/signed-in.ts";
import { onlyViewed } from "../api/access.ts";
import { call } from "../api/call.ts";
import { assistant } from "../pages/assistant/chat.tsx";
import { keys } from "../pages/account/keys.tsx";
import { notifications } from "../pages/account/notifications.tsx";
import { profile } from "../pages/account/profile.tsx";
import { sessions } from "../pages/account/sessions.tsx";
import { twoFactor } from "../pages/account/two-factor.tsx";
import { activityList } from "../pages/activity/list.tsx";
import { brandSheet } from "../pages/kit/brand.tsx";
import { prefetchRules, prefetchRulesPath } from "../pages/kit/prefetch.ts";
import { billingDetails } from "../pages/billing/details.tsx";
import { billing } from "../pages/billing/overview.tsx";
import { planChange } from "../pages/billing/plan.tsx";
import { databaseAccess } from "../pages/databases/access.tsx";
import { databaseBackups } from "../pages/databases/backups.tsx";
import { databaseConnect } from "../pages/databases/connect.tsx";
import { databaseData } from "../pages/databases/data.tsx";
import { databaseList } from "../pages/databases/list.tsx";
import { databaseLogs } from "../pages/databases/logs.tsx";
import { databaseMetrics } from "../pages/databases/metrics.tsx";
import { newDatabase } from "../pages/databases/new.tsx";
import { databaseOverview } from "../pages/databases/overview.tsx";
import { databaseSettings } from "../pages/databases/settings.tsx";
import { overview } from "../pages/home/overview.tsx";
import { operatorAccount, operatorAccounts } from "../pages/operator/accounts.tsx";
import { operatorHosts } from "../pages/operator/hosts.tsx";
import { operatorMoney, operatorQueue, operatorSites } from "../pages/operator/lists.tsx";
import { operatorOverview } from "../pages/operator/overview.tsx";
import { operatorPlans } from "../pages/operator/plans.tsx";
import { operatorRefund } from "../pages/operator/refund.tsx";
import { operatorSettings } from "../pages/operator/settings.tsx";
import { operatorSystem } from "../pages/operator/system.tsx";
import type { Screen } from "../pages/kit/screen.ts";
import { siteClone } from "../pages/sites/clone.tsx";
import { siteCompare } from "../pages/sites/compare.tsx";
import { siteCommand } from "../pages/sites/command.tsx";
import { siteData } from "../pages/sites/data.tsx";
import { siteVolume } from "../pages/sites/volume.tsx";
import { deploymentPage } from "../pages/sites/deployment.tsx";
import { siteDeployments } from "../pages/sites/deployments.tsx";
import { siteDomains } from "../pages/sites/domains.tsx";
import { siteJobs } from "../pages/sites/jobs.tsx";
import { siteList } from "../pages/sites/list.tsx";
import { siteLogs } from "../pages/sites/logs.tsx";
import { siteMetrics } from "../pages/sites/metrics.tsx";
import { newSite } from "../pages/sites/new.tsx";
import { siteOverview } from "../pages/sites/overview.tsx";
import { siteRequests } from "../pages/sites/requests.tsx";
import { siteSettings } from "../pages/sites/settings.tsx";
import { siteVariables } from "../pages/sites/variables.tsx";
import { routesOfScreens } from "./screens.tsx";

/** Every page of a signed-in person, one file each in worker/pages/<area>. */
export const screens: readonly Screen[] = [
  assistant,
  operatorAccount,
  operatorAccounts,
  operatorHosts,
  operatorMoney,
  operatorOverview,
  operatorPlans,
  operatorQueue,
  operatorRefund,
  operatorSettings,
  operatorSites,
  operatorSystem,
  overview,
  newSite,
  siteList,
  siteOverview,
  siteDeployments,
  siteDomains,
  siteData,
  siteVolume,
  siteJobs,
  siteCommand,
  siteClone,
  siteCompare,
  siteLogs,
  siteMetrics,
  siteRequests,
  siteSettings,
  siteVariables,
  deploymentPage,
  profile,
  keys,
  notifications,
  sessions,
  twoFactor,
  activityList,
  billing,
  billingDetails,
  planChange,
  databaseList,
  newDatabase,
  databaseOverview,
  databaseConnect,
  databaseData,
  databaseLogs,
  databaseMetrics,
  databaseBackups,
  databaseAccess,
  databaseSettings,
];

/** The path on this origin that a form was sent from. */
const backTo = (referrer: string | undefined, origin: string): string => {
  const url = referrer !== undefined && URL.canParse(referrer) ? new URL(referrer) : null;
  return url?.origin === origin ? ownPath(url.pathname + url.search) : "/";
};

export const dashboard = new Hono<AppEnv>()
  .get("/brand.css", limitAddress, (c) =>
    c.body(brandSheet(c.get("brand")?.accent ?? null), 200, {
      "Content-Type": "text/css; charset=utf-8",
      "Cache-Control": "public, max-age=60",
    }),
  )
  .get(prefetchRulesPath, limitAddress, (c) =>
    c.body(JSON.stringify(prefetchRules), 200, {
      "Content-Type": "application/speculationrules+json",
      "Cache-Control": "public, max-age=3600",
    }),
  )
  .post("/theme", limitAddress, limitBody, async (c) => {
    requireSameOrigin(c);
    const { SITE_URL } = configOf(c.env);
    const { theme } = z
      .object({ theme: z.enum(["light", "dark", "system"]).catch("system") })
      .parse(await formFields(c.req));
    const maxAge = theme === "system" ? 0 : 31_536_000;
    setCookie(c, "theme", theme, { path: "/", sameSite: "Lax", secure: isSecure(configOf(c.env)), maxAge });
    return c.redirect(backTo(c.req.header("Referer"), new URL(SITE_URL).origin), 303);
  })
  .post("/confirm-email", async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    if (ctx.actor.type === "viewer") throw onlyViewed();
    const { email } = await call(ctx, "getAccount", {});
    await formToAuth(c, "/send-verification-email", { email });
    say(c, { tone: "good", text: `We sent a link to ${email}. It is valid for one hour.` });
    return c.redirect(backTo(c.req.header("Referer"), new URL(configOf(c.env).SITE_URL).origin), 303);
  })
  .get("/sites/:id/newest-deployment", async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    const id = c.req.param("id");
    const [newest] = (await call(ctx, "listDeployments", { id, limit: 1 })).data;
    return c.redirect(newest ? `/deployments/${newest.id}` : `/sites/${id}/deployments`, 303);
  })
  .get("/databases/:id/after-payment", async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    const { id, links } = await call(ctx, "getDatabase", { id: c.req.param("id") });
    // A database that was ordered beside a site: the site's own invoice is next.
    for (const { siteId } of links)
      if ((await call(ctx, "getSite", { id: siteId })).status === "PENDING")
        return c.redirect(`/sites/${siteId}`, 303);
    return c.redirect(`/databases/${id}`, 303);
  })
  .route("/", routesOfScreens(screens));
