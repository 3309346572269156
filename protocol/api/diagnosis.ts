import * as z from "zod";
import { deploymentStatuses, deploymentTriggers } from "../states.ts";
import { text, Timestamp } from "./common.ts";
import { DomainName } from "./domains.ts";
import { EnvKey, EnvVariable } from "./sites.ts";

/** A request that would mend something: an operation of this document with its input. */
export const Fix = z
  .object({
    summary: z.string(),
    operation: z.string().describe("The operation's id in this document."),
    input: z.record(z.string(), z.unknown()).describe("Its path parameters and body."),
  })
  .meta({ id: "Fix" });
export type Fix = z.infer<typeof Fix>;

const deploymentSteps = ["queue", "clone", "build", "release", "start", "probation"] as const;
export type DeploymentStep = (typeof deploymentSteps)[number];

const Compared = z.object({
  id: z.string(),
  number: z.number().int(),
  status: z.enum(deploymentStatuses),
  trigger: z.enum(deploymentTriggers),
  commit: z.string().nullable(),
  commitMessage: z.string().nullable(),
  finishedAt: Timestamp.nullable(),
});

/** Facts about a deployment's outcome, gathered and judged by code. */
export const DeploymentExplanation = z
  .object({
    deployment: Compared,
    failed: z.boolean(),
    step: z.enum(deploymentSteps).nullable().describe("The step that it failed in; null: it did not fail."),
    error: z.string().nullable(),
    exitCode: z.number().int().nullable(),
    outOfMemory: z.boolean(),
    probe: z.string().nullable().describe("The health check's result, such as `answers 500`."),
    lastLines: z.array(z.string()).describe("The last lines of its log: at most 40."),
    lastGood: Compared.nullable().describe("The latest successful deployment before it."),
    changed: z
      .object({
        commit: z.boolean(),
        environment: z
          .array(z.object({ key: z.string(), change: z.enum(["added", "changed", "removed"]) }))
          .describe("The site's own variables that differ; those of linked databases are not compared."),
        settings: z.array(z.string()).describe("The names of the settings that differ."),
        unknownSettings: z
          .array(z.string())
          .describe(
            "Settings that cannot be compared, because one version's build settings are no longer kept.",
          ),
      })
      .nullable()
      .describe("Compared with the last successful one; null: none, or no longer known."),
    unapplied: z
      .array(z.object({ setting: z.string(), deployed: z.unknown(), site: z.unknown() }))
      .describe(
        "Run settings of the site that differ from those that this deployment runs with: the next deployment takes the site's.",
      ),
    cause: z
      .object({ code: z.string(), explanation: z.string() })
      .nullable()
      .describe("A known cause; null: the error and the last lines are all that is known."),
    fixes: z.array(Fix).describe("None once a later deployment has succeeded."),
  })
  .meta({ id: "DeploymentExplanation" });
export type DeploymentExplanation = z.infer<typeof DeploymentExplanation>;

/** In the order in which they are looked at. */
export const siteChecks = [
  "invoice",
  "host",
  "database",
  "deployment",
  "container",
  "port",
  "health",
  "route",
  "dns",
  "certificate",
  "disk",
  "changes",
] as const;
export type SiteCheck = (typeof siteChecks)[number];

export const SiteDiagnosis = z
  .object({
    healthy: z.boolean().describe("No check found a problem."),
    summary: z.string().describe("The first problem, or a statement that there is none."),
    checks: z.array(
      z.object({
        check: z.enum(siteChecks),
        status: z
          .enum(["ok", "problem", "unknown"])
          .describe("unknown: it could not be checked, such as while the host does not respond."),
        finding: z.string(),
        fixes: z.array(Fix),
      }),
    ),
  })
  .meta({ id: "SiteDiagnosis" });
export type SiteDiagnosis = z.infer<typeof SiteDiagnosis>;

export const SiteProbe = z.strictObject({
  path: text
    .max(2000)
    .regex(/^\/(?![/\\])[\x21-\x7e]*$/, "a path that begins with one slash, in visible ASCII")
    .default("/"),
  domain: DomainName.optional().describe("One of the site's verified domains. Default: its own address."),
});
export type SiteProbe = z.infer<typeof SiteProbe>;

/** Requests from outside, as a visitor makes them. Bodies are not read. */
export const SiteProbed = z
  .object({
    reachable: z.boolean().describe("The last request was answered, with any status."),
    status: z.number().int().nullable(),
    ttfbMs: z.number().nonnegative().nullable().describe("Until the first byte of the last answer."),
    tls: z.boolean().describe("Its connection was encrypted, with a valid certificate."),
    error: z.string().nullable().describe("Why the site itself did not answer."),
    requests: z
      .array(
        z.object({
          url: z.string(),
          status: z.number().int().nullable(),
          ttfbMs: z.number().nonnegative(),
          location: z.string().nullable().describe("Where it redirects to."),
        }),
      )
      .describe("The redirects between the site's own names are followed, at most five; others are not."),
  })
  .meta({ id: "SiteProbed" });
export type SiteProbed = z.infer<typeof SiteProbed>;

export const Unhealthy = z.object({
  data: z
    .array(
      z.object({
        kind: z.enum(["site", "database"]),
        id: z.string(),
        name: z.string(),
        status: z.string(),
        reason: z.string(),
        error: z.string().nullable(),
      }),
    )
    .describe("Unhealthy sites and databases."),
  looked: z.number().int().describe("How many sites and databases were checked."),
});
export type Unhealthy = z.infer<typeof Unhealthy>;

/** The value is generated by the service and never shown. */
export const SecretGenerate = z.strictObject({
  key: EnvKey,
  length: z.number().int().min(16).max(128).default(43).describe("Characters of A–Z, a–z, 0–9, - and _."),
  scope: EnvVariable.shape.scope,
});
export type SecretGenerate = z.infer<typeof SecretGenerate>;
