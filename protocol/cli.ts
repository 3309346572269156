import * as z from "zod";
import { LogLine } from "./api/deployments.ts";
import { AccountEvent } from "./api/events.ts";
import { Ingress } from "./api/ingress.ts";
import { ProjectFile } from "./api/project-file.ts";
import { EnvVariableShown } from "./api/sites.ts";

const names = z.array(z.string());
/** A step of `berth up`; what else it has depends on its kind. */
const step = z.looseObject({
  kind: z.enum([
    "createSite",
    "setting",
    "variable",
    "domain",
    "createDatabase",
    "linkDatabase",
    "createSchedule",
    "changeSchedule",
    "removeVariable",
    "removeDomain",
    "removeSchedule",
  ]),
});
const check = z.strictObject({ check: z.string(), ok: z.boolean(), detail: z.string() });

/**
 * What commands print with --json where no operation answers it. The program takes types from here only: it starts
 * without zod.
 */
export const answers = {
  signedIn: z.strictObject({ url: z.url(), email: z.string(), profile: z.string() }),
  signedOut: z.strictObject({
    url: z.url().nullable(),
    profile: z.string(),
    revoked: z.boolean().describe("Whether the service has ended the key."),
  }),
  profiles: z.strictObject({
    data: z.array(
      z.strictObject({
        name: z.string(),
        url: z.url(),
        email: z.string().nullable(),
        signedIn: z.boolean(),
        used: z.boolean().describe("Whether commands use it."),
      }),
    ),
  }),
  profileUsed: z.strictObject({ profile: z.string(), url: z.url() }),
  page: z.strictObject({ url: z.url() }),
  linked: z.strictObject({ id: z.string(), name: z.string() }),
  unlinked: z.strictObject({ id: z.string().nullable() }),
  projectFile: z.strictObject({ file: z.string(), content: ProjectFile }),
  difference: z.strictObject({
    changes: z.array(step),
    kept: z.array(step).describe("What the file does not list."),
  }),
  applied: z.strictObject({
    siteId: z.string(),
    changes: z.array(step),
    invoices: z.array(z.url()).describe("Where to pay."),
  }),
  variables: z.strictObject({ data: z.array(EnvVariableShown) }),
  variablesChanged: z.strictObject({
    changed: z.array(z.strictObject({ key: z.string(), removed: z.boolean() })),
    restartRequired: z.boolean(),
  }),
  variablesPulled: z.strictObject({ file: z.string(), written: names, secrets: names }),
  variablesDifference: z.strictObject({ added: names, changed: names, removed: names, unknown: names }),
  ingress: Ingress,
  savedFile: z.strictObject({ file: z.string(), bytes: z.int() }),
  tunnel: z.strictObject({ port: z.int(), address: z.string() }),
  checks: z.strictObject({ checks: z.array(check) }),
  completion: z.strictObject({ shell: z.enum(["bash", "zsh", "fish"]), script: z.string() }),
  upgraded: z.strictObject({ from: z.string(), to: z.string() }),
  logLine: LogLine,
  change: AccountEvent,
  operation: z
    .union([z.unknown()])
    .describe("the answer of the operation, which is JSON unless it is a file"),
} satisfies Record<string, z.ZodType>;
export type Answers = { [Name in keyof typeof answers]: z.input<(typeof answers)[Name]> };
