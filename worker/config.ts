import * as z from "zod";
import { dnsProviders } from "../protocol/api/dns.ts";
import { isLoopback } from "../protocol/loopback.ts";
import type { ChatPrices } from "./domain/chat-price.ts";
import { deriveKey, type KeyPurpose } from "./domain/tokens.ts";

/** What crosses a network is https, whatever it is: a session, a key, a mail's token. */
const address = z
  .url({ protocol: /^https?$/ })
  .refine(
    (url) => url.startsWith("https:") || isLoopback(new URL(url).hostname),
    "http is for addresses of this machine alone (127.0.0.1, localhost): use https",
  );
const origin = address.transform((url) => new URL(url).origin);

/** A domain in lower case, without a final dot. */
const domain = z
  .string()
  .max(253)
  .regex(/^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/, "a domain such as sites.example.com");

const key = z.string().regex(/^[A-Za-z0-9_-]{43}$/, "32 bytes in base64url");

const rate = z.number().min(0).max(10_000);

const Settings = z.object({
  SITE_URL: origin,
  /** Where deploy webhooks are served; default: SITE_URL. */
  WEBHOOK_HOST: origin.optional(),
  SITES_ORIGIN: origin,
  /** "test": the embedded test processor, which takes no money. */
  PAYMENTS: z.enum(["test", "stripe"]).default("test"),
  STRIPE_SECRET_KEY: z
    .string()
    .regex(/^[sr]k_(live|test)_\w+$/, "a secret or restricted key of Stripe")
    .optional(),
  STRIPE_WEBHOOK_SECRET: z.string().startsWith("whsec_").optional(),
  STRIPE_API_HOST: origin.default("https://api.stripe.com"),
  SECRET_KEY: key,
  /** Earlier values of SECRET_KEY, by commas: what was made with them still opens and works. */
  SECRET_KEYS_OLD: z
    .string()
    .optional()
    .transform((list) => (list ?? "").split(",").flatMap((one) => one.trim() || []))
    .pipe(z.array(key)),
  /** What API keys, webhook addresses and sessions are derived from instead of SECRET_KEY, so that they outlive it. */
  TOKEN_KEY: key.optional(),
  SETUP_TOKEN: z.string().min(32).optional(),
  /** Seconds a new container may take until it answers. */
  START_TIMEOUT_SECONDS: z.coerce.number().int().min(1).max(600).default(60),
  BUILD_TIMEOUT_SECONDS: z.coerce.number().int().min(10).max(7200).default(900),
  /** Of a Procfile's release command, such as one that migrates a database. */
  RELEASE_TIMEOUT_SECONDS: z.coerce.number().int().min(1).max(3600).default(600),
  /** "closed": only who has an account signs in. */
  SIGN_UP: z.enum(["open", "closed"]).default("open"),
  GITHUB_CLIENT_ID: z.string().min(1).optional(),
  GITHUB_CLIENT_SECRET: z.string().min(1).optional(),
  /** Resolvers that speak DNS over HTTPS in its JSON form, by commas. */
  DNS_ENDPOINTS: z
    .string()
    .default("https://cloudflare-dns.com/dns-query,https://dns.google/resolve")
    .transform((list) => list.split(",").map((url) => url.trim()))
    .pipe(z.array(address).min(1)),
  /** Where the sites' own names are kept. "none": the operator sets a wildcard record that leads to the only host. */
  DNS_PROVIDER: z.enum(dnsProviders).default("none"),
  CLOUDFLARE_ZONE_ID: z
    .string()
    .regex(/^[0-9a-f]{32}$/, "the 32 characters on the zone's overview page")
    .optional(),
  /** Needs the permission DNS:Edit for the zone. */
  CLOUDFLARE_API_TOKEN: z.string().min(1).optional(),
  CLOUDFLARE_API_URL: address.default("https://api.cloudflare.com/client/v4"),
  /** "on": Cloudflare's network serves the sites (its TLS, caching, firewall) and fetches from the hosts. */
  CLOUDFLARE_PROXIED: z.enum(["on", "off"]).default("off"),
  POWERDNS_API_URL: address.optional(),
  POWERDNS_API_KEY: z.string().min(1).optional(),
  POWERDNS_SERVER_ID: z.string().min(1).default("localhost"),
  /** The zone that contains the sites' domain; default: the host of SITES_ORIGIN. */
  POWERDNS_ZONE: domain.optional(),
  /** Issues the wildcard certificate of the sites' own names, with a DNS provider. */
  ACME_DIRECTORY: address.default("https://acme-v02.api.letsencrypt.org/directory"),
  /** The contact for certificates that are about to expire. */
  ACME_EMAIL: z.email().optional(),
  /** What the hosts' certificate authority is called in CAA records (RFC 8659), by commas. */
  CAA_ISSUERS: z
    .string()
    .default("letsencrypt.org")
    .transform((list) => list.split(",").map((name) => name.trim().toLowerCase()))
    .pipe(z.array(z.string().min(1)).min(1)),
  /** Git hosts, by commas, that the agents' BERTH_INSECURE_GIT_HOSTS name too: no other address on a port or a private network is taken. */
  INSECURE_GIT_HOSTS: z
    .string()
    .default("")
    .transform((list) => list.split(",").flatMap((one) => one.trim() || [])),
  /** A repository that anyone may try as their first site, as host/owner/repo. */
  SAMPLE_REPOSITORY: z.string().min(1).optional(),
  /** Takes mail as `POST {from, to, subject, text}` with a bearer token, as Resend's API does. */
  MAIL_ENDPOINT: address.optional(),
  MAIL_TOKEN: z.string().min(1).optional(),
  MAIL_FROM: z.string().min(3).optional(),
  /** A server that speaks OpenAI's Chat Completions, such as https://api.openai.com/v1; without it the assistant takes commands. */
  MODEL_URL: address.optional(),
  MODEL_NAME: z.string().min(1).optional(),
  MODEL_KEY: z.string().min(1).optional(),
  /** How much a model thinks that can be told so: its thoughts are part of an answer's tokens. */
  MODEL_REASONING_EFFORT: z.enum(["none", "minimal", "low", "medium", "high"]).optional(),
  /**
   * Credits per 1,000 tokens by model, such as {"gpt-5-mini":{"prompt":0.1,"completion":0.8}}. A message to a model that is not
   * named costs CHAT_CREDITS.
   */
  CHAT_PRICES: z
    .string()
    .default("{}")
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: "custom", message: "not valid JSON" });
        return z.NEVER;
      }
    })
    .pipe(z.record(z.string(), z.strictObject({ prompt: rate, completion: rate }))),
  /** What each answered message to the assistant costs at least. */
  CHAT_CREDITS: z.coerce.number().int().min(1).max(10_000).default(1),
});

/** What a message costs with the configured model; without one, each costs the same. */
export const chatPricesOf = ({ CHAT_PRICES, CHAT_CREDITS, MODEL_URL, MODEL_NAME }: Config): ChatPrices => ({
  rates: (MODEL_URL !== undefined && MODEL_NAME !== undefined && CHAT_PRICES[MODEL_NAME]) || null,
  least: CHAT_CREDITS,
});

export const isLiveKey = (stripeKey: string): boolean => /^[sr]k_live_/.test(stripeKey);

const Config = Settings.transform((settings) => ({
  ...settings,
  WEBHOOK_HOST: settings.WEBHOOK_HOST ?? settings.SITE_URL,
})).superRefine((config, context) => {
  const refuse = (path: keyof typeof config, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  if (config.PAYMENTS === "test" && config.STRIPE_SECRET_KEY && isLiveKey(config.STRIPE_SECRET_KEY))
    refuse(
      "PAYMENTS",
      'STRIPE_SECRET_KEY is live, so nobody may pay with test payments: set PAYMENTS to "stripe"',
    );
  const needed = {
    none: [],
    cloudflare: ["CLOUDFLARE_ZONE_ID", "CLOUDFLARE_API_TOKEN"],
    powerdns: ["POWERDNS_API_URL", "POWERDNS_API_KEY"],
  } as const;
  for (const name of needed[config.DNS_PROVIDER])
    if (config[name] === undefined) refuse(name, `DNS_PROVIDER is "${config.DNS_PROVIDER}", which needs it`);
  const sites = new URL(config.SITES_ORIGIN).hostname;
  if (config.DNS_PROVIDER !== "none" && !domain.safeParse(sites).success)
    refuse("SITES_ORIGIN", `DNS_PROVIDER is "${config.DNS_PROVIDER}", which needs a domain, not ${sites}`);
  const { POWERDNS_ZONE: zone } = config;
  if (zone !== undefined && sites !== zone && !sites.endsWith(`.${zone}`))
    refuse("POWERDNS_ZONE", `it must contain the host of SITES_ORIGIN, ${sites}`);
  if (config.PAYMENTS === "stripe")
    for (const name of ["STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"] as const)
      if (config[name] === undefined) refuse(name, 'PAYMENTS is "stripe", which needs it');
});
export type Config = z.infer<typeof Config>;

type Keys = [Uint8Array<ArrayBuffer>, ...Uint8Array<ArrayBuffer>[]];
const derived = new WeakMap<Config, Partial<Record<KeyPurpose, Keys>>>();

/** The keys that tokens for this purpose are made and checked with, the one that makes new ones first. Derived once per isolate. */
export function tokenKeys(config: Config, purpose: KeyPurpose): Keys {
  const known = derived.get(config) ?? {};
  derived.set(config, known);
  const { TOKEN_KEY, SECRET_KEY, SECRET_KEYS_OLD } = config;
  const older = [...(TOKEN_KEY ? [SECRET_KEY] : []), ...SECRET_KEYS_OLD];
  return (known[purpose] ??= [
    deriveKey(TOKEN_KEY ?? SECRET_KEY, purpose),
    ...older.map((secret) => deriveKey(secret, purpose)),
  ]);
}

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
