import * as z from "zod";
import { domainProblems, domainStatuses } from "../states.ts";
import { text, Timestamp } from "./common.ts";

const pattern =
  /^(\*\.)?(?=.*[a-z])([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** Characters that end the host in a URL, or that its parser would decode. */
const notInHost = /[\s/?#@:\\%[\]<>^|"'`{}]/;

/** The stored form: lower-case ASCII (UTS #46), without a final dot; unchanged where it cannot be a name. */
function asciiName(typed: string): string {
  const wildcard = typed.startsWith("*.") ? "*." : "";
  const host = typed.slice(wildcard.length).replace(/[.\u3002]$/, "");
  if (notInHost.test(host)) return typed;
  try {
    return wildcard + new URL(`http://${host}`).hostname;
  } catch {
    return "";
  }
}

/**
 * A DNS name of at least two labels, or `*.` before one. Internationalized names are accepted in Unicode and stored in
 * their `xn--` form (RFC 5891).
 */
export const DomainName = text
  .max(253)
  .trim()
  .overwrite(asciiName)
  .max(253)
  .refine((name) => pattern.test(name), "a domain name such as www.example.com");

export const DomainChange = z.union(
  [DomainName, z.strictObject({ remove: DomainName }), z.strictObject({ verify: DomainName })],
  'a domain name, {"remove": a domain name} or {"verify": a domain name}',
);
export type DomainChange = z.infer<typeof DomainChange>;

export const DomainCreate = z
  .strictObject({
    domain: DomainName.describe("Such as www.example.com, example.com or *.example.com."),
    redirectTo: DomainName.optional().describe(
      "Another domain of this site, to which visitors of this one are redirected.",
    ),
    pair: z
      .boolean()
      .optional()
      .describe(
        "Adds the other name of the pair example.com and www.example.com as well. It redirects to `domain`, and the same TXT record proves it.",
      ),
  })
  .meta({ id: "DomainCreate" });
export type DomainCreate = z.infer<typeof DomainCreate>;

export const DomainProblem = z
  .object({
    code: z.enum(domainProblems),
    message: z.string().describe("The problem and its remedy."),
  })
  .meta({ id: "DomainProblem" });
export type DomainProblem = z.infer<typeof DomainProblem>;

export const DomainCertificate = z
  .object({
    issuer: z.string().nullable(),
    notBefore: Timestamp.nullable(),
    notAfter: Timestamp.nullable(),
    error: z
      .string()
      .nullable()
      .describe(
        "Why it was last not issued or renewed since: the certificate authority's refusal, or what kept the host from it.",
      ),
    errorAt: Timestamp.nullable(),
  })
  .meta({ id: "DomainCertificate" });
export type DomainCertificate = z.infer<typeof DomainCertificate>;

export const Domain = z
  .object({
    id: z.string(),
    domain: z.string(),
    displayName: z.string().describe("The name in Unicode, as people read it."),
    status: z
      .enum(domainStatuses)
      .describe(
        "PENDING_VERIFICATION: ownership is not proved. VERIFIED: proved, and waits for what `problems` says. ACTIVE: visitors reach the site by it. ERROR: proved, but `problems` must be fixed.",
      ),
    problems: z.array(DomainProblem).describe("As of `checkedAt`, the most important one first."),
    record: z
      .object({ type: z.enum(["TXT", "CNAME"]), name: z.string(), value: z.string() })
      .describe("Proves ownership: create this record, then verify the domain."),
    target: z
      .string()
      .describe("The target of the domain: a CNAME record, or ALIAS/A at the root of a zone."),
    redirectTo: z.string().nullable().describe("Visitors are redirected to this domain of the site."),
    certificate: DomainCertificate.nullable().describe(
      "As last reported by its host; null: none was requested yet, or the installation serves plain HTTP.",
    ),
    verifiedAt: Timestamp.nullable(),
    checkedAt: Timestamp.nullable(),
    nextCheckAt: Timestamp.nullable().describe(
      "When it is next checked automatically; null: within a minute.",
    ),
    releaseAt: Timestamp.nullable().describe(
      "When the name is released, because both its ownership record and its address are gone.",
    ),
    createdAt: Timestamp,
  })
  .meta({ id: "Domain" });
export type Domain = z.infer<typeof Domain>;

export const DomainRemoved = z.object({ domain: z.string(), removed: z.literal(true) });
export type DomainRemoved = z.infer<typeof DomainRemoved>;

/** The changed domain; `removed` if it was deleted. */
export const DomainChanged = z.union([Domain, DomainRemoved]);
export type DomainChanged = z.infer<typeof DomainChanged>;

/** All of the site's domains; their number is limited. */
export const DomainList = z.object({ data: z.array(Domain) }).meta({ id: "DomainList" });
export type DomainList = z.infer<typeof DomainList>;
