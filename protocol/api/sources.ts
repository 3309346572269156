import * as z from "zod";
import {
  maxBranches,
  maxBranchName,
  maxCommand,
  maxFolder,
  maxNotes,
  maxRootDirs,
  maxSentence,
  maxVariables,
  maxWord,
} from "../inspection-limits.ts";
import { databaseTypes } from "../states.ts";
import { text } from "./common.ts";
import { GitAddress, GitBranch, GitToken, Port, RepositoryPath } from "./sites.ts";

export const SourceInspect = z.strictObject({
  githubUrl: GitAddress,
  branch: GitBranch.optional().describe("Default: the repository's default branch."),
  gitToken: GitToken.optional().describe("For a private repository. Used for this request only."),
  rootDir: RepositoryPath.optional().describe("The folder of the app. Default: the repository's root."),
});
export type SourceInspect = z.infer<typeof SourceInspect>;

const sentence = text.min(1).max(maxSentence);
const command = text.max(maxCommand).nullable();
const word = text.max(maxWord).nullable();
const branch = text.max(maxBranchName).nullable();

/** What a repository's files say about how it is built and started. */
export const SourceInspection = z.object({
  reachable: z.boolean().describe("Whether the repository and the branch could be read."),
  commit: z.string().max(64).nullable(),
  branch: branch.describe("The branch that was read."),
  defaultBranch: branch,
  branches: z
    .array(z.string().max(maxBranchName))
    .max(maxBranches)
    .describe("The first 200, the default branch first."),
  rootDirs: z
    .array(z.string().max(maxFolder))
    .max(maxRootDirs)
    .describe("Folders below the root that look like apps, each a possible rootDir."),
  builder: z
    .enum(["dockerfile", "detected"])
    .nullable()
    .describe("The builder; null: it cannot be built as it is, see `problem`."),
  language: word,
  languageVersion: word.describe("null: the default, or unknown."),
  framework: word,
  packageManager: word,
  isStatic: z.boolean().describe("The build's output is served as files, without a process of the app."),
  installCommand: command,
  buildCommand: command,
  startCommand: command,
  releaseCommand: command,
  port: Port.nullable().describe("A suggestion for the site's port, passed to the app as PORT."),
  variables: z
    .array(z.string().max(200))
    .max(maxVariables)
    .describe("The names in .env.example and similar files."),
  databases: z.array(z.enum(databaseTypes)).max(10).describe("The databases it appears to use."),
  notes: z.array(sentence).max(maxNotes).describe("Ignored settings of the repository, and other remarks."),
  problem: sentence.nullable().describe("Why it will not work as it is, and what to do."),
});
export type SourceInspection = z.infer<typeof SourceInspection>;
