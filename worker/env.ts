import * as z from "zod";
import type { DeploymentLog } from "./objects/deployment-log.ts";
import type { DeviceCode } from "./objects/device-code.ts";
import type { HostLink } from "./objects/host-link.ts";
import type { KeyGuard } from "./objects/key-guard.ts";
import type { RateLimit } from "./objects/rate-limit.ts";

/** Bindings as wrangler.toml names them. */
export type Env = {
  DB: D1Database;
  /** Backups of databases; worker/adapters/storage.ts. */
  BACKUPS: R2Bucket;
  /** Files beside the Worker; scripts/lib/bundle.ts makes them. */
  ASSETS: Fetcher;
  HOST_LINK: DurableObjectNamespace<HostLink>;
  KEY_GUARD: DurableObjectNamespace<KeyGuard>;
  DEPLOYMENT_LOG: DurableObjectNamespace<DeploymentLog>;
  DEVICE_CODE: DurableObjectNamespace<DeviceCode>;
  RATE_LIMIT: DurableObjectNamespace<RateLimit>;
};

const origin = z.url({ protocol: /^https?$/ }).transform((url) => new URL(url).origin);

const Config = z.object({
  SITE_URL: origin,
  WEBHOOK_HOST: origin,
  SITES_ORIGIN: origin,
  PAYMENTS: z.literal("test"),
  SECRET_KEY: z.string().regex(/^[A-Za-z0-9_-]{43}$/, "32 bytes in base64url"),
  SETUP_TOKEN: z.string().min(32).optional(),
  /** Seconds a new container may take until it answers. */
  START_TIMEOUT_SECONDS: z.coerce.number().int().min(1).max(600).default(60),
  BUILD_TIMEOUT_SECONDS: z.coerce.number().int().min(10).max(7200).default(900),
  /** "closed": only who has an account signs in. */
  SIGN_UP: z.enum(["open", "closed"]).default("open"),
  GITHUB_CLIENT_ID: z.string().min(1).optional(),
  GITHUB_CLIENT_SECRET: z.string().min(1).optional(),
  /** Resolvers that speak DNS over HTTPS in its JSON form, by commas. */
  DNS_ENDPOINTS: z
    .string()
    .default("https://cloudflare-dns.com/dns-query,https://dns.google/resolve")
    .transform((list) => list.split(",").map((url) => url.trim()))
    .pipe(z.array(z.url({ protocol: /^https?$/ })).min(1)),
  /** Takes mail as `POST {from, to, subject, text}` with a bearer token, as Resend's API does. */
  MAIL_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  MAIL_TOKEN: z.string().min(1).optional(),
  MAIL_FROM: z.string().min(3).optional(),
});
export type Config = z.infer<typeof Config>;

const parsed = new WeakMap<object, Config>();

/** The configuration, parsed once per isolate. Throws with the list of what is wrong. */
export function configOf(env: object): Config {
  let config = parsed.get(env);
  if (!config) {
    const result = Config.safeParse(env);
    if (!result.success) throw new Error(`Configuration: ${z.prettifyError(result.error)}`);
    parsed.set(env, (config = result.data));
  }
  return config;
}
