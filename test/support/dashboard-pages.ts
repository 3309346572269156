/** Ids of what the pages are about. */
export type Shown = {
  site: string;
  deployment: string;
  command: string;
  database: string;
  account: string;
  /** Paid. */
  invoice: string;
};

const ofSite =
  (tab: string) =>
  ({ site }: Shown) =>
    `/sites/${site}${tab}`;
const ofDatabase =
  (tab: string) =>
  ({ database }: Shown) =>
    `/databases/${database}${tab}`;
const alone = (path: string) => () => path;

/**
 * Where each page of the dashboard is seen, by its path in worker/pages. test/worker/screens.test.ts holds this list against the
 * screens, and test/e2e/dashboard-pages.test.ts opens them all.
 */
export const dashboardPages: Readonly<Record<string, (shown: Shown) => string>> = {
  "/": alone("/"),
  "/account": alone("/account"),
  "/account/keys": alone("/account/keys"),
  "/account/notifications": alone("/account/notifications"),
  "/account/sessions": alone("/account/sessions"),
  "/account/two-factor": alone("/account/two-factor"),
  "/activity": alone("/activity"),
  "/assistant": alone("/assistant"),
  "/billing": alone("/billing"),
  "/billing/details": alone("/billing/details"),
  "/billing/plan/:id": ({ site }) => `/billing/plan/${site}`,
  "/databases": alone("/databases"),
  "/databases/:id": ofDatabase(""),
  "/databases/:id/access": ofDatabase("/access"),
  "/databases/:id/backups": ofDatabase("/backups"),
  "/databases/:id/connect": ofDatabase("/connect"),
  "/databases/:id/data": ofDatabase("/data"),
  "/databases/:id/logs": ofDatabase("/logs"),
  "/databases/:id/metrics": ofDatabase("/metrics"),
  "/databases/:id/settings": ofDatabase("/settings"),
  "/databases/new": alone("/databases/new"),
  "/deployments/:id{dep_[0-9a-z]+}": ({ deployment }) => `/deployments/${deployment}`,
  "/operator": alone("/operator"),
  "/operator/accounts": alone("/operator/accounts"),
  "/operator/accounts/:id": ({ account }) => `/operator/accounts/${account}`,
  "/operator/hosts": alone("/operator/hosts"),
  "/operator/money": alone("/operator/money"),
  "/operator/money/:id/refund": ({ invoice }) => `/operator/money/${invoice}/refund`,
  "/operator/plans": alone("/operator/plans"),
  "/operator/queue": alone("/operator/queue?state=ended"),
  "/operator/settings": alone("/operator/settings"),
  "/operator/sites": alone("/operator/sites"),
  "/operator/system": alone("/operator/system"),
  "/sites": alone("/sites"),
  "/sites/:id/clone": ofSite("/clone"),
  "/sites/:id/compare": ofSite("/compare"),
  "/sites/:id/data": ofSite("/data?path=/"),
  "/sites/:id/data/:name": ofSite("/data/uploads"),
  "/sites/:id/domains": ofSite("/domains"),
  "/sites/:id/jobs": ofSite("/jobs"),
  "/sites/:id/jobs/:command": ({ site, command }) => `/sites/${site}/jobs/${command}`,
  "/sites/:id/metrics": ofSite("/metrics"),
  "/sites/:id/requests": ofSite("/requests"),
  "/sites/:id/settings": ofSite("/settings"),
  "/sites/:id{site_[0-9a-z]+}": ofSite(""),
  "/sites/:id{site_[0-9a-z]+}/deployments": ofSite("/deployments"),
  "/sites/:id{site_[0-9a-z]+}/logs": ofSite("/logs"),
  "/sites/:id{site_[0-9a-z]+}/variables": ofSite("/variables"),
  "/sites/new": alone("/sites/new"),
};

/** Pages that need no session, as somebody without one sees them. */
export const publicPages = [
  "/",
  "/sign-in",
  "/sign-up",
  "/forgot-password",
  "/reset-password?token=x",
  "/docs",
  "/nowhere",
];

/** Pages that a new account finds empty. */
export const emptyPages = [
  "/",
  "/sites",
  "/databases",
  "/activity",
  "/billing",
  "/account/keys",
  "/account/notifications",
  "/sites/new",
  "/databases/new",
];
