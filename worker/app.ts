import { Hono } from "hono";
import { contextStorage } from "hono/context-storage";
import { requestId } from "hono/request-id";
import { secureHeaders } from "hono/secure-headers";
import { operations } from "../protocol/api/operations.ts";
import type { AppEnv } from "./app-env.ts";
import { answerHeaders } from "./middleware/answer-headers.ts";
import { anybody, authenticate } from "./middleware/authenticate.ts";
import { hearOut, limitBody, query, requireJson } from "./middleware/body.ts";
import { httpsOnly } from "./middleware/https.ts";
import { idempotency } from "./middleware/idempotency.ts";
import { onError, onNotFound } from "./middleware/errors.ts";
import { knownQuery } from "./middleware/known-query.ts";
import { noteSession } from "./middleware/session.ts";
import { tellRequestId } from "./middleware/request-id.ts";
import { accounts } from "./routes/accounts.ts";
import { agent } from "./routes/agent.ts";
import { auth } from "./routes/auth.ts";
import { backupFiles, backups } from "./routes/backups.ts";
import { chat } from "./routes/chat.ts";
import { commands } from "./routes/commands.ts";
import { credits } from "./routes/credits.ts";
import { dashboard } from "./routes/dashboard.tsx";
import { databases } from "./routes/databases.ts";
import { deployments } from "./routes/deployments.ts";
import { devicePage } from "./routes/device-page.tsx";
import { device } from "./routes/device.ts";
import { hosts } from "./routes/hosts.ts";
import { install } from "./routes/install.ts";
import { invoicePage } from "./routes/invoice-page.tsx";
import { invoices } from "./routes/invoices.ts";
import { keys } from "./routes/keys.ts";
import { ledger } from "./routes/ledger.ts";
import { packs } from "./routes/packs.ts";
import { payments } from "./routes/payments.ts";
import { openApi, reference } from "./routes/reference.tsx";
import { secrets } from "./routes/secrets.ts";
import { schedules } from "./routes/schedules.ts";
import { setup } from "./routes/setup.ts";
import { signInPages } from "./routes/sign-in.tsx";
import { deploymentPages, sitePages } from "./routes/site-pages.tsx";
import { sites } from "./routes/sites.ts";
import { testPayments } from "./routes/test-payments.tsx";
import { webhooks } from "./routes/webhooks.ts";
import { listCreditPackages } from "./services/credits/list-packages.ts";
import { listPacks } from "./services/packs/list.ts";
import { version } from "./version.ts";

const pageHeaders = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'unsafe-inline'"],
    // Signing in with GitHub and paying with Stripe begin with a form of ours.
    formAction: ["'self'", "https://github.com", "https://checkout.stripe.com"],
    frameAncestors: ["'none'"],
    baseUri: ["'none'"],
  },
  crossOriginResourcePolicy: false,
  // "no-referrer", the default, makes browsers post forms with `Origin: null`.
  referrerPolicy: "same-origin",
});

/** The API under {base_url} = {site_url}/api/v1. */
const api = new Hono<AppEnv>()
  .use("/openapi.json", anybody, knownQuery)
  .route("/", openApi)
  .get("/credits/packages", anybody, knownQuery, query(operations.listCreditPackages.query), async (c) =>
    c.json(await listCreditPackages(c.var.ctx, c.req.valid("query"))),
  )
  .get("/packs", anybody, knownQuery, query(operations.listPacks.query), async (c) =>
    c.json(await listPacks(c.var.ctx, c.req.valid("query"))),
  )
  .use("/auth/*", anybody, knownQuery)
  .route("/auth", device)
  .use(authenticate, knownQuery)
  // Not for reads, which are most requests and have no body.
  .on(["POST", "PATCH", "DELETE"], "*", limitBody, requireJson, idempotency)
  .route("/sites", sites)
  .route("/databases", databases)
  .route("/backups", backups)
  .route("/credits", credits)
  .route("/chat", chat)
  .route("/deployments", deployments)
  .route("/commands", commands)
  .route("/schedules", schedules)
  .route("/hosts", hosts)
  .route("/invoices", invoices)
  .route("/keys", keys)
  .route("/accounts", accounts)
  .route("/secrets", secrets)
  .route("/ledger", ledger)
  .route("/packs", packs)
  .route("/payments", payments);

export const app = new Hono<AppEnv>()
  .use(requestId({ limitLength: 64 }), tellRequestId, answerHeaders, hearOut, httpsOnly)
  .get("/health", (c) => c.json({ status: "ok", version }))
  .route("/api/v1", api)
  .use("/webhooks/*", knownQuery)
  .route("/webhooks", webhooks)
  .route("/agent", agent)
  .route("/backups", backupFiles)
  .route("/install", install)
  .route("/setup", setup)
  .route("/api/auth", auth)
  .use(contextStorage(), pageHeaders, noteSession)
  .route("/invoice", invoicePage)
  .route("/test-payments", testPayments)
  .route("/device", devicePage)
  .route("/sites", sitePages)
  .route("/deployments", deploymentPages)
  .route("/", reference)
  .route("/", signInPages)
  .route("/", dashboard)
  .onError(onError)
  .notFound(onNotFound);
