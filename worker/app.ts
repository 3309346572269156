import { Hono } from "hono";
import { contextStorage } from "hono/context-storage";
import { requestId } from "hono/request-id";
import { secureHeaders } from "hono/secure-headers";
import { routesOf } from "./api/routes.ts";
import type { AppEnv } from "./app-env.ts";
import "../protocol/issue-messages.ts";
import { answerHeaders } from "./middleware/answer-headers.ts";
import { authenticate } from "./middleware/authenticate.ts";
import { drainRequestBody } from "./middleware/body.ts";
import { httpsOnly } from "./middleware/https.ts";
import { onError, onNotFound } from "./middleware/errors.ts";
import { preparePage } from "./middleware/page.ts";
import { noteSession } from "./middleware/session.ts";
import { RememberingRouter } from "./router.ts";
import { agent } from "./routes/agent.ts";
import { assets } from "./routes/assets.ts";
import { auth } from "./routes/auth.ts";
import { backupFiles } from "./routes/backup-files.ts";
import { dashboard } from "./routes/dashboard.ts";
import { devicePage } from "./routes/device-page.tsx";
import { install } from "./routes/install.ts";
import { invoicePage } from "./routes/invoice-page.tsx";
import { confirmAddressPage } from "./routes/confirm-address.tsx";
import { confirmPage } from "./routes/confirm-page.tsx";
import { landing } from "./routes/landing.tsx";
import { mcp, mcpMetadata } from "./routes/mcp.ts";
import { oauth, oauthMetadata, oauthPage } from "./routes/oauth.tsx";
import { reference } from "./routes/reference.tsx";
import { streams } from "./routes/streams.ts";
import { setup } from "./routes/setup.ts";
import { signInPages } from "./routes/sign-in.tsx";
import { testPayments } from "./routes/test-payments.tsx";
import { viewAs } from "./routes/view-as.ts";
import { webhooks } from "./routes/webhooks.ts";

const pageHeaders = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    connectSrc: ["'self'"],
    imgSrc: ["'self'", "data:"],
    fontSrc: ["'self'"],
    // Signing in with GitHub and paying with Stripe begin with a form of ours.
    formAction: ["'self'", "https://github.com", "https://checkout.stripe.com"],
    frameAncestors: ["'none'"],
    baseUri: ["'none'"],
    requireTrustedTypesFor: ["'script'"],
    trustedTypes: ["berth"],
  },
  crossOriginResourcePolicy: false,
  // "no-referrer", the default, makes browsers post forms with `Origin: null`.
  referrerPolicy: "same-origin",
});

/** The API under {base_url} = {site_url}/api/v1; an address that it does not know is told to nobody without credentials. */
const api = new Hono<AppEnv>().route("/", streams).route("/", routesOf(undefined)).use(authenticate);

export const app = new Hono<AppEnv>({ router: new RememberingRouter() })
  .use(requestId({ limitLength: 64 }), answerHeaders, drainRequestBody, httpsOnly)
  .route("/", routesOf("site"))
  .route("/api/v1", api)
  .route("/mcp", mcp)
  .route("/.well-known", mcpMetadata)
  .route("/.well-known", oauthMetadata)
  .route("/oauth", oauth)
  .route("/webhooks", webhooks)
  .route("/agent", agent)
  .route("/backups", backupFiles)
  .route("/install", install)
  .route("/setup", setup)
  .route("/api/auth", auth)
  .route("/assets", assets)
  .use(contextStorage(), pageHeaders, noteSession, preparePage)
  .route("/", landing)
  .route("/", dashboard)
  .route("/invoice", invoicePage)
  .route("/test-payments", testPayments)
  .route("/device", devicePage)
  .route("/oauth/authorize", oauthPage)
  .route("/confirm", confirmPage)
  .route("/confirm-address", confirmAddressPage)
  .route("/view-as", viewAs)
  .route("/", reference)
  .route("/", signInPages)
  .onError(onError)
  .notFound(onNotFound);
