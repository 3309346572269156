import type { DomainProblem } from "../../protocol/api/domains.ts";
import { isCloudflare } from "./cloudflare-ranges.ts";
import { isWildcard } from "../../protocol/wildcards.ts";
import type { Addresses, CaaRecord } from "./resolved-records.ts";
import { isApex, withoutWildcard } from "./domain-names.ts";

/** The record that proves ownership, as its owner sets it. */
export type ProofRecord = { type: "TXT" | "CNAME"; name: string; value: string };

/** Why the records found do not prove the name; null: they do. */
export function proofProblem(record: ProofRecord, found: readonly string[]): DomainProblem | null {
  if (found.includes(record.value)) return null;
  if (found.length === 0)
    return {
      code: "proof_missing",
      message: `There is no ${record.type} record at ${record.name} yet. Create it with the value ${record.value}, wait a few minutes, then verify again.`,
    };
  return {
    code: "proof_other",
    message: `The ${record.type} record at ${record.name} has a different value, ${shortened(found[0] ?? "")}. Set it to ${record.value}.`,
  };
}

/** @param wanted the addresses of the site's own name, `target`. @param left those of hosts where the site was before */
export function addressProblems(
  name: string,
  target: string,
  seen: Addresses,
  wanted: Addresses,
  left: readonly string[] = [],
): DomainProblem[] {
  const { v4, v6 } = wanted;
  if (v4.length + v6.length === 0)
    return [
      {
        code: "target_missing",
        message: `${target}, the name of the site itself, has no address. The operator of this installation must set its record.`,
      },
    ];
  const should = shouldBe(name, target, wanted);
  if (seen.v4.length + seen.v6.length === 0) {
    const alias = seen.aliases[0];
    return alias === undefined
      ? [{ code: "address_missing", message: `${name} has no address. Create ${should}.` }]
      : [
          {
            code: "cname_other",
            message: `${name} has CNAME ${alias}, which has no address. It should be ${should}.`,
          },
        ];
  }
  const others = { v4: without(seen.v4, v4), v6: without(seen.v6, v6) };
  const proxies = [...others.v4, ...others.v6].filter(isCloudflare);
  if (proxies.length > 0)
    return [
      {
        code: "proxied",
        message: `${name} has ${recordOf(proxies[0] ?? "")}, an address of Cloudflare's proxy, and no request by way of it has reached the site's host. Let the record be ${should}, or turn its proxy off ("DNS only").`,
      },
    ];
  const alias = seen.aliases[0];
  if (alias !== undefined && alias !== target && others.v4.length + others.v6.length > 0)
    return [{ code: "cname_other", message: `${name} has CNAME ${alias}, it should be ${should}.` }];
  return [
    ...others.v4.map((address): DomainProblem => ({
      code: "address_other",
      message: `${name} has A ${address}, ${
        left.includes(address) ? "the address of a host that the site has left. It" : "it"
      } should be ${should}.`,
    })),
    ...others.v6.map((address): DomainProblem => ({
      code: "address_other_ipv6",
      message: `${name} has AAAA ${address}, which leads elsewhere. ${
        v6.length === 0 ? "Remove this record" : `It should be AAAA ${v6.join(" and ")}`
      }: visitors and certificate authorities prefer IPv6.`,
    })),
  ];
}

/** Whether any address of the name is one of ours. */
export const leadsHere = (seen: Addresses, wanted: Addresses): boolean =>
  [...seen.v4, ...seen.v6].some((address) => wanted.v4.includes(address) || wanted.v6.includes(address));

/** The first name of these, from the domain upwards, that has CAA records is authoritative (RFC 8659, section 3). */
export function caaNames(name: string): string[] {
  const labels = withoutWildcard(name).split(".");
  return labels.map((_, index) => labels.slice(index).join("."));
}

/** How certificates are validated here; wildcards by DNS alone. */
const methods = { single: ["http-01", "tls-alpn-01"], wildcard: ["dns-01"] };
/** Defined by RFC 8659, 9495 and the CA/Browser Forum, beside those that grant. */
const harmlessTags = ["issue", "issuewild", "iodef", "issuemail", "issuevmc", "contactemail", "contactphone"];

/**
 * Why the CAA records at `at` forbid our certificate authority; null: they do not. @param issuers its names in CAA
 * records, such as letsencrypt.org
 */
export function caaProblem(
  name: string,
  at: string,
  records: readonly CaaRecord[],
  issuers: readonly string[],
): DomainProblem | null {
  const wildcard = isWildcard(name);
  const critical = records.find(({ flags, tag }) => flags >= 128 && !harmlessTags.includes(tag));
  if (critical)
    return {
      code: "caa_forbids",
      message: `${at} has a critical CAA record "${shortened(critical.tag)}", which forbids certificates for ${name}. Remove it.`,
    };
  // Of a wildcard, these count alone (RFC 8659, section 4.3).
  const granting = wildcard && records.some(({ tag }) => tag === "issuewild") ? "issuewild" : "issue";
  const grants = records.filter(({ tag }) => tag === granting);
  if (grants.length === 0) return null;
  const allowed = methods[wildcard ? "wildcard" : "single"];
  if (grants.some(({ value }) => permits(value, issuers, allowed))) return null;
  const found = grants.map(({ tag, value }) => `CAA 0 ${tag} "${shortened(value)}"`).join(" and ");
  return {
    code: "caa_forbids",
    message: `${at} has ${found}, which forbids our certificate authority to issue for ${name}. Add CAA 0 ${granting} "${issuers[0] ?? ""}" there, or remove its CAA records.`,
  };
}

/** `ca.example; validationmethods=http-01` (RFC 8657); an account other than ours is another one. */
function permits(value: string, issuers: readonly string[], allowed: readonly string[]): boolean {
  const [issuer = "", ...parameters] = value.split(";").map((part) => part.trim().toLowerCase());
  if (!issuers.includes(issuer)) return false;
  return parameters.every((parameter) => {
    const [tag, list = ""] = parameter.split("=");
    if (tag === "accounturi") return false;
    return tag !== "validationmethods" || list.split(",").some((method) => allowed.includes(method.trim()));
  });
}

const recordOf = (address: string): string => `${address.includes(":") ? "AAAA" : "A"} ${address}`;
const without = (list: readonly string[], known: readonly string[]): string[] =>
  list.filter((one) => !known.includes(one));
/** Records are other people's text. */
const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text);

/** The records that lead here. */
function shouldBe(name: string, target: string, { v4, v6 }: Addresses): string {
  const addresses = [...v4, ...v6].map(recordOf).join(" and ");
  return isApex(name)
    ? `${addresses}, or an ALIAS (ANAME) record to ${target} where its DNS provider has those`
    : `CNAME ${target} or ${addresses}`;
}
