import * as z from "zod";
import { databaseTypes } from "../states.ts";
import { TimeoutSeconds } from "./commands.ts";
import { text } from "./common.ts";
import { DatabaseName } from "./databases.ts";
import { CronExpression } from "./schedules.ts";
import {
  Builder,
  command,
  EnvKey,
  GitAddress,
  GitBranch,
  ImageReference,
  LabelName,
  LanguageVersion,
  Lifecycle,
  Port,
  RepositoryPath,
  SiteName,
} from "./sites.ts";
import { Replicas, Volumes } from "./volumes.ts";

/** Settings of a site that berth.json may hold: all that are no secrets, and not where it comes from. */
const ProjectSettings = z
  .strictObject({
    port: Port,
    buildCommand: command.nullable(),
    startCommand: command.nullable(),
    releaseCommand: command.nullable(),
    dockerfilePath: RepositoryPath.nullable(),
    builder: Builder.nullable(),
    installCommand: command.nullable(),
    outputDir: RepositoryPath.nullable(),
    singlePage: z.boolean().nullable(),
    languageVersion: LanguageVersion.nullable(),
    startTimeoutSeconds: z.number().int().min(1).max(600).nullable(),
    healthCheckPath: text.max(300).nullable(),
    replicas: Replicas,
    volumes: Volumes,
    lifecycle: Lifecycle,
  })
  .partial();
type ProjectSettings = z.infer<typeof ProjectSettings>;

/**
 * berth.json: a site as its repository wants it, without secrets. What it does not name is left as it is; null unsets.
 */
export const ProjectFile = z
  .strictObject({
    $schema: z.string().max(1000).optional(),
    name: SiteName.describe("The site's name in your account."),
    source: z
      .strictObject({
        repository: GitAddress.optional().describe("Default: origin of the checkout."),
        branch: GitBranch.optional().describe("Default: the repository's default branch."),
        rootDir: RepositoryPath.optional().describe("The folder of the app in the repository."),
        image: ImageReference.optional().describe("A container image instead of a repository."),
      })
      .refine(
        ({ image, ...rest }) => image === undefined || Object.values(rest).every((one) => one === undefined),
        "an image, or a repository with its branch and folder",
      )
      .optional(),
    settings: ProjectSettings.optional(),
    variables: z
      .record(EnvKey, text.max(32_768))
      .optional()
      .describe("Plain variables. Secrets do not belong in a file: use berth env set --secret."),
    domains: z.array(text.min(1).max(253)).max(50).optional(),
    databases: z
      .array(
        z.strictObject({
          name: DatabaseName,
          type: z.enum(databaseTypes),
          variable: EnvKey.optional().describe("Default: DATABASE_URL, or REDIS_URL for a Redis database."),
        }),
      )
      .max(20)
      .optional()
      .describe("Created where they do not exist, and linked to the site."),
    schedules: z
      .array(
        z.strictObject({
          name: LabelName,
          cron: CronExpression,
          command,
          timeoutSeconds: TimeoutSeconds.optional(),
          enabled: z.boolean().optional(),
        }),
      )
      .max(50)
      .optional(),
  })
  .meta({ title: "berth.json" });
export type ProjectFile = z.infer<typeof ProjectFile>;
