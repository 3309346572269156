import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Question } from "../../../protocol/agent/running.ts";
import type { SourceInspection } from "../../../protocol/api/sources.ts";
import type { Host } from "../../host.ts";
import { JobError } from "../../job.ts";
import { removeTree } from "../../remove-tree.ts";
import type { Readers } from "../readers.ts";
import { outlineOf } from "./outline.ts";
import type { Described } from "./describe.ts";
import { sentence } from "./fitting.ts";
import type { Given } from "./inspect-in-reader.ts";
import { Turns } from "./turns.ts";

type Means = Pick<Host, "workDirectory" | "readers" | "settings">;
type Asked = Extract<Question, { kind: "source" }>;
export type InspectSource = (asked: Asked, signal: AbortSignal) => Promise<SourceInspection>;

/** On this host; builds have the rest of it. */
const limits = { atOnce: 2, perAccount: 3, waiting: 20 };

/** Reads what a repository says about how it is built, without building or keeping anything of it. */
export function openSourceInspection(host: Means): InspectSource {
  const turns = new Turns(limits);
  return async ({ accountId, source, rootDir, timeoutMs }, signal) => {
    const late = AbortSignal.timeout(timeoutMs);
    const stop = AbortSignal.any([signal, late]);
    try {
      return await turns.take(accountId, stop, () => inspect(host, accountId, source, rootDir, stop));
    } catch (error) {
      if (late.aborted && !signal.aborted)
        return refused(
          `The repository ${source.address} took more than ${Math.round(timeoutMs / 1000)} seconds to read: try again, or create the site without a check.`,
        );
      if (error instanceof JobError) return refused(sentence(error.message));
      throw error;
    }
  };
}

async function inspect(
  { workDirectory, readers, settings }: Means,
  accountId: string,
  source: Asked["source"],
  rootDir: string | null,
  signal: AbortSignal,
): Promise<SourceInspection> {
  const work = join(workDirectory, `inspect-${randomUUID()}`);
  const folder = join(work, "source");
  try {
    await mkdir(work, { mode: 0o700 });
    const outline = await outlineOf(source, rootDir, folder, settings, signal);
    return {
      reachable: true,
      ...outline,
      ...(await describeApart(readers, accountId, { program: "inspect", folder, rootDir }, signal)),
    };
  } finally {
    await removeTree(work);
  }
}

/** In a process of its own, which is ended when it takes too much, before this rejects. @throws JobError */
function describeApart(
  readers: Readers,
  accountId: string,
  given: Given,
  signal: AbortSignal,
): Promise<Described> {
  const { promise, resolve, reject } = Promise.withResolvers<Described>();
  const reading = readers.read(
    accountId,
    given,
    signal,
    (message) => {
      if (message.type !== "described") return reading.end(new Error(`A reader answered ${message.type}`));
      reading.done();
      resolve(message.described);
    },
    (reason, ended) => void ended.then(() => reject(reason)),
  );
  return promise;
}

/** Nothing of it could be read. */
const refused = (problem: string): SourceInspection => ({
  reachable: false,
  commit: null,
  branch: null,
  defaultBranch: null,
  branches: [],
  rootDirs: [],
  builder: null,
  language: null,
  languageVersion: null,
  framework: null,
  packageManager: null,
  isStatic: false,
  installCommand: null,
  buildCommand: null,
  startCommand: null,
  releaseCommand: null,
  port: null,
  variables: [],
  databases: [],
  notes: [],
  problem,
});
