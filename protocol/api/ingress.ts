import * as z from "zod";
import { text } from "./common.ts";
import { Network } from "./public-access.ts";

/** A path of a URL (RFC 3986, 3.3), without query: visible ASCII, with what else there is percent-encoded. */
const UrlPath = z
  .string()
  .max(1000)
  .regex(
    /^\/(?![/\\])[A-Za-z0-9._~!$&'()*+,;=:@%/-]*$/,
    "a path that starts with one /, without query, percent-encoded",
  );

const isWebAddress = (value: string): boolean => {
  if (!/^https?:\/\/[\x21-\x7e]+$/i.test(value) || !URL.canParse(value)) return false;
  const { username, password, hostname, hash } = new URL(value);
  return username === "" && password === "" && hostname !== "" && hash === "";
};

/** A path, with a query if wanted, or an address of another site. */
const RedirectTarget = z
  .string()
  .max(2000)
  .refine(
    (value) =>
      /^\/(?![/\\])[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*$/.test(value) ||
      (isWebAddress(value) && !value.includes("\\")),
    "a path that starts with one /, or an address such as https://example.com/path",
  );

const match = z
  .enum(["exact", "prefix"])
  .optional()
  .describe(
    "prefix: also the paths below it; what follows the prefix is added to the target. Default: exact.",
  );

export const Redirect = z.strictObject({
  from: UrlPath,
  match,
  to: RedirectTarget.describe("The query of the request is kept."),
  code: z
    .literal([301, 302, 307, 308])
    .optional()
    .describe("307 and 308 keep the method and the body. Default: 308."),
});
export type Redirect = z.infer<typeof Redirect>;

const Rewrite = z.strictObject({
  from: UrlPath,
  match,
  to: UrlPath.describe("The path that the app receives instead; the query is kept."),
});
type Rewrite = z.infer<typeof Rewrite>;

/** What belongs to one connection (RFC 9110, 7.6.1), describes the body, or is the ingress's own. */
const reservedHeaders =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|content-range|content-type|date|server|via|location|set-cookie|alt-svc|strict-transport-security|www-authenticate|retry-after|berth-.*|x-forwarded-.*|x-real-ip|sec-websocket-.*|host)$/i;

const HeaderName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, "letters, digits and -")
  .refine(
    (name) => !reservedHeaders.test(name),
    "is set by the app or by the ingress and cannot be set here",
  );
const HeaderValue = z
  .string()
  .min(1)
  .max(2000)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, "visible ASCII, without spaces around it");

export const maxResponseHeaders = 16;
/** In megabytes. The ingress is configured once, with one limit of each. */
export const bodyLimitsMb = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000] as const;

const uniqueNames = (headers: Record<string, string>) =>
  new Set(Object.keys(headers).map((name) => name.toLowerCase())).size === Object.keys(headers).length;

const settings = {
  redirects: z.array(Redirect).min(1).max(200).describe("The first that matches applies."),
  rewrites: z.array(Rewrite).min(1).max(200).describe("The first that matches applies, once."),
  primaryDomain: z
    .string()
    .trim()
    .toLowerCase()
    .min(1)
    .max(253)
    .describe("One of the site's own names: requests for the others are redirected (308) to it."),
  httpsOnly: z.boolean().describe("Plain http requests are redirected (308) to https."),
  hsts: z
    .strictObject({
      maxAgeSeconds: z.number().int().min(0).max(63_072_000),
      includeSubdomains: z.boolean().optional(),
      preload: z.boolean().optional(),
    })
    .describe("Strict-Transport-Security (RFC 6797) on responses over https."),
  allow: z
    .array(Network)
    .min(1)
    .max(100)
    .describe("Addresses and networks that may use the site; all others receive 403."),
  headers: z
    .record(HeaderName, HeaderValue)
    .refine((headers) => Object.keys(headers).length <= maxResponseHeaders, `at most ${maxResponseHeaders}`)
    .refine(uniqueNames, "each header once")
    .describe("Headers of every response of the app; they replace its own of the same name."),
  maintenance: z
    .strictObject({ message: text.max(2000).optional() })
    .describe("Visitors receive a page with this text (503) while the site runs on."),
  maxBodyMb: z
    .literal([...bodyLimitsMb])
    .describe("The largest body of a request; larger ones receive 413. Default: no limit."),
  stickySessions: z
    .boolean()
    .describe("A visitor stays with one replica (cookie berth-replica) as long as it answers."),
};

export const BasicAuth = z.strictObject({
  username: text
    .min(1)
    .max(100)
    .regex(/^[\x20-\x39\x3b-\x7e]+$/, "visible ASCII without :"),
  password: text.min(8).max(200),
});

type Shape = typeof settings;
const mapShape = <To>(map: (field: z.ZodType) => z.ZodType) =>
  Object.fromEntries(Object.entries(settings).map(([name, field]) => [name, map(field)])) as To;

/** What is omitted stays as it is, null clears. */
export const IngressChange = z
  .strictObject({
    ...mapShape<{ [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>> }>((field) =>
      field.nullable().optional(),
    ),
    basicAuth: BasicAuth.nullable().optional(),
  })
  .refine((change) => Object.keys(change).length > 0, "name at least one setting")
  .meta({ id: "SiteIngressChange" });
export type IngressChange = z.infer<typeof IngressChange>;

/** As returned; null: unset. */
export const Ingress = z
  .object({
    ...mapShape<{ [Name in keyof Shape]: z.ZodNullable<Shape[Name]> }>((field) => field.nullable()),
    basicAuth: z.object({ username: z.string(), hasPassword: z.literal(true) }).nullable(),
  })
  .meta({ id: "SiteIngress" });
export type Ingress = z.infer<typeof Ingress>;

/** As stored and sent to the host: the password as `scrypt$N$r$p$salt$hash`, salt and hash in base64url. */
export const IngressRules = z
  .object({ ...settings, basicAuth: z.object({ username: z.string(), hash: z.string() }) })
  .partial();
export type IngressRules = z.infer<typeof IngressRules>;
/** As sent to the host, with the domains that redirect to another of the site's domains. */
export const HostIngressRules = IngressRules.extend({
  redirectDomains: z.record(z.string(), z.string()).optional(),
});
export type HostIngressRules = z.infer<typeof HostIngressRules>;
export const ingressSettingNames = Object.keys(IngressRules.shape) as (keyof IngressRules)[];
