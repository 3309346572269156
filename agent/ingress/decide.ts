import { createHash } from "node:crypto";
import { BlockList, isIPv4 } from "node:net";
import type { HostIngressRules, IngressRules } from "../../protocol/api/ingress.ts";
import { wildcardOf } from "../../protocol/wildcards.ts";
import { mebibyte } from "../docker/mebibyte.ts";
import { escaped, page } from "./pages.ts";
import type { Target } from "./ingress.ts";

/** A visitor's request, as Caddy describes it. */
export type Asked = {
  /** Lower case, without port. */
  hostname: string;
  /** As the visitor wrote it. */
  host: string;
  /** Path and query as the visitor wrote them. */
  uri: string;
  isHttps: boolean;
  address: string;
  authorization: string;
  cookie: string;
  /** The announced length of the body; 0 where none is announced. */
  bodyBytes: number;
};

/** An answer of the ingress's own, or what the request to the app is like. */
export type Decision =
  | { status: number; headers: Record<string, string>; html: string }
  | {
      pass: {
        /** Path and query for the app, where others than asked for. */
        uri?: string;
        /** Headers of the answer. */
        headers: Record<string, string>;
        setCookie?: string;
        /** The first label of the name that Caddy looks up: the replica to ask, or `p-any`. */
        pin: string;
        isAuthorized: boolean;
        maxBodyMb?: number;
      };
    };

/** A password's check, which takes time: whether it is right, or after how many seconds to try again. */
export type CheckPassword = (
  basicAuth: NonNullable<IngressRules["basicAuth"]>,
  authorization: string,
  address: string,
) => Promise<boolean | { retryAfterSeconds: number }>;

const stickyCookie = "berth-replica";
const noStore = { "Cache-Control": "no-store" };

/**
 * What becomes of one request: who may not see the site learns nothing of it but where its address is. HSTS is in all answers by https: the
 * lists of browsers (`preload`) want it in redirects as well.
 */
export async function decide(
  asked: Asked,
  rules: HostIngressRules,
  site: Site,
  checkPassword: CheckPassword,
): Promise<Decision> {
  const decision = await decideOn(asked, rules, site, checkPassword);
  if (!asked.isHttps || !rules.hsts) return decision;
  const hsts = hstsOf(rules.hsts);
  return "status" in decision
    ? { ...decision, headers: { ...decision.headers, ...hsts } }
    : { pass: { ...decision.pass, headers: { ...decision.pass.headers, ...hsts } } };
}

type Site = { hostnames: readonly string[]; targets: readonly Target[] };

async function decideOn(
  asked: Asked,
  rules: HostIngressRules,
  site: Site,
  checkPassword: CheckPassword,
): Promise<Decision> {
  const { primaryDomain, allow, basicAuth, maintenance, maxBodyMb } = rules;
  const port = /:\d+$/.exec(asked.host)?.[0] ?? "";
  // Without one of https's own: the ingress's port of plain http is none.
  if (rules.httpsOnly && !asked.isHttps) return redirect(308, `https://${asked.hostname}${asked.uri}`);
  const isNamed = site.hostnames.some((name) => name.toLowerCase() === asked.hostname);
  // Below a wildcard each name is served for itself, unless the wildcard redirects.
  const preferred = (
    isNamed
      ? [primaryDomain, rules.redirectDomains?.[asked.hostname]]
      : [rules.redirectDomains?.[wildcardOf(asked.hostname)]]
  ).find((wanted) => site.hostnames.some((name) => name.toLowerCase() === wanted));
  if (preferred !== undefined && preferred !== asked.hostname)
    return redirect(308, `${asked.isHttps ? "https" : "http"}://${preferred}${port}${asked.uri}`);
  if (allow && !listOf(allow).check(...addressIn(asked.address)))
    return refusal(403, "This site is not open to you", "Its owner has limited where it can be used from.");
  if (basicAuth) {
    const isRight = await checkPassword(basicAuth, asked.authorization, asked.address);
    if (typeof isRight === "object")
      return refusal(429, "Too many wrong passwords", "Wait a minute, then try again.", {
        "Retry-After": String(isRight.retryAfterSeconds),
      });
    if (!isRight)
      return refusal(401, "This site needs a password", "Ask its owner for it.", {
        "WWW-Authenticate": `Basic realm="${asked.hostname}", charset="UTF-8"`,
      });
  }
  if (maintenance)
    return refusal(
      503,
      "This site is under maintenance",
      escaped(maintenance.message ?? "It will be back soon.").replaceAll("\n", "<br>"),
      { "Retry-After": "120" },
    );
  const to = ruleFor(rules.redirects, asked.uri);
  if (to) return redirect(to.rule.code ?? 308, to.uri);
  if (maxBodyMb !== undefined && asked.bodyBytes > maxBodyMb * mebibyte)
    return refusal(413, "The request is too large", `This site accepts at most ${maxBodyMb} MB.`);
  const rewritten = ruleFor(rules.rewrites, asked.uri)?.uri;
  const pinned = rules.stickySessions === true ? pinFor(asked, site.targets) : null;
  return {
    pass: {
      ...(rewritten !== undefined && { uri: rewritten }),
      headers: { ...rules.headers },
      ...(pinned?.setCookie !== undefined && { setCookie: pinned.setCookie }),
      pin: pinned?.pin ?? "p-any",
      isAuthorized: basicAuth !== undefined,
      ...(maxBodyMb !== undefined && { maxBodyMb }),
    },
  };
}

const refusal = (
  status: number,
  title: string,
  text: string,
  headers: Record<string, string> = {},
): Decision => ({ status, headers: { ...noStore, ...headers }, html: page(title, text) });

/** Visible ASCII, whatever the visitor's path was: a header takes nothing else. */
const inHeader = (uri: string): string =>
  Buffer.from(uri, "latin1").reduce(
    (text, byte) =>
      text +
      (byte > 0x20 && byte < 0x7f
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`),
    "",
  );

const redirect = (status: number, location: string): Decision => ({
  status,
  headers: { ...noStore, Location: inHeader(location) },
  html: "",
});

type Rule = { from: string; match?: "exact" | "prefix" | undefined; to: string };

/** The first rule that matches, and where it leads: what follows the prefix and the query are kept. */
function ruleFor<R extends Rule>(
  rules: readonly R[] | undefined,
  uri: string,
): { rule: R; uri: string } | null {
  const [, path = "", query = ""] = /^([^?]*)\??(.*)$/s.exec(uri) ?? [];
  for (const rule of rules ?? []) {
    const rest = restOf(rule, path);
    if (rest === null) continue;
    const [, base = "", ownQuery = ""] = /^([^?]*)\??(.*)$/s.exec(rule.to) ?? [];
    const whole = rest === "" ? base : `${base.replace(/\/$/, "")}${rest}`;
    const queries = [ownQuery, query].filter((one) => one !== "").join("&");
    // Two slashes at the beginning, or what browsers take for them, would be another site's address.
    const safe = rule.to.startsWith("/") ? whole.replace(/^[/\\]+/, "/") : whole;
    return { rule, uri: queries === "" ? safe : `${safe}?${queries}` };
  }
  return null;
}

/** What follows the rule's path; null: it does not match. */
function restOf({ from, match }: Rule, path: string): string | null {
  if (path === from) return "";
  const folder = from.replace(/\/$/, "");
  return match === "prefix" && path.startsWith(`${folder}/`) ? path.slice(folder.length) : null;
}

const lists = new WeakMap<readonly string[], BlockList>();

/** Node's list of blocked addresses, used for allowed ones. */
function listOf(networks: readonly string[]): BlockList {
  const known = lists.get(networks);
  if (known) return known;
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  lists.set(networks, list);
  return list;
}

/** An IPv4 address that came by a socket of IPv6 is one of IPv4; a zone is none of the address. */
function addressIn(text: string): [string, "ipv4" | "ipv6"] {
  const address = text.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  return [address, isIPv4(address) ? "ipv4" : "ipv6"];
}

const hstsOf = ({
  maxAgeSeconds,
  includeSubdomains,
  preload,
}: NonNullable<IngressRules["hsts"]>): Record<string, string> => ({
  "Strict-Transport-Security": [
    `max-age=${maxAgeSeconds}`,
    ...(includeSubdomains ? ["includeSubDomains"] : []),
    ...(preload ? ["preload"] : []),
  ].join("; "),
});

/** Tells nothing of the container, and is the same as long as it lives. */
export const pinOf = ({ containerId }: Pick<Target, "containerId">): string =>
  `p-${createHash("sha256").update(containerId).digest("hex").slice(0, 8)}`;

/** The visitor's replica, or any of those that run, which is his from now on. */
function pinFor(asked: Asked, targets: readonly Target[]): { pin: string; setCookie?: string } | null {
  const up = targets.filter(({ down }) => down !== true);
  if (up.length < 2) return null;
  const pins = up.map(pinOf);
  const given = new RegExp(`(?:^|;\\s*)${stickyCookie}=(p-[0-9a-f]{8})(?:;|$)`).exec(asked.cookie)?.[1];
  if (given !== undefined && pins.includes(given)) return { pin: given };
  const pin = pins[Math.floor(Math.random() * pins.length)] ?? "p-any";
  const setCookie = `${stickyCookie}=${pin}; Path=/; HttpOnly; SameSite=Lax${asked.isHttps ? "; Secure" : ""}`;
  return { pin, setCookie };
}
