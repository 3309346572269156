import * as z from "zod";
import { Timestamp } from "./common.ts";

export const dnsProviders = ["none", "cloudflare", "powerdns"] as const;

const WildcardCertificate = z
  .object({
    name: z.string(),
    issuer: z.string().nullable(),
    notBefore: Timestamp.nullable(),
    notAfter: Timestamp.nullable().describe("null: none has been issued yet; each name obtains its own."),
    renewAt: Timestamp.nullable(),
    step: z.enum(["PUBLISH", "VALIDATE", "FINALIZE"]).nullable().describe("Of the order in progress."),
    error: z
      .string()
      .nullable()
      .describe("Why the last attempt failed. The current certificate stays in use."),
    errorSince: Timestamp.nullable(),
    nextAttemptAt: Timestamp.nullable().describe("null: at the next minute that has work."),
  })
  .meta({ id: "WildcardCertificate" });

export const Dns = z
  .object({
    domain: z.string().describe("Sites have their own names below it."),
    provider: z
      .enum(dnsProviders)
      .describe("Where the records are kept; `none`: the operator maintains them."),
    recordCount: z.number().int().describe("Number of required record sets."),
    comparedAt: Timestamp.nullable().describe("When all records were last correct."),
    error: z.string().nullable().describe("Why the last attempt failed. Existing records stay."),
    errorSince: Timestamp.nullable(),
    conflicts: z
      .array(z.object({ name: z.string(), type: z.string(), found: z.string() }))
      .describe("Names with a record that Berth did not create and leaves alone. Remove it or the site."),
    certificate: WildcardCertificate.nullable().describe(
      "The certificate for all sites' own names; null without a DNS provider.",
    ),
  })
  .meta({ id: "Dns" });
export type Dns = z.infer<typeof Dns>;
