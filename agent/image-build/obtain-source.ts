import { join } from "node:path";
import type { HostSettings } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import { checkSource, sourceLimits, type SourceLimits, type Tally } from "./check-source.ts";
import { fetchSource, type GitSource } from "./fetch-source.ts";
import { fetchLargeFiles } from "./large-files.ts";
import { moduleAddress, sharesToken } from "./source-address.ts";
import { placeSubmodule, submodulesOf } from "./submodules.ts";

const moduleLimits = { depth: 3, count: 20 };
const extrasTimeoutMs = 5 * 60_000;

export type Wanted = GitSource & { submodules?: boolean | undefined; lfs?: boolean | undefined };
type Run = Pick<JobRun, "signal" | "log">;
type Repository = { source: Wanted; folder: string; path: string; depth: number };

/**
 * The repository in `rootFolder`, with its submodules and the files Git LFS keeps where they are asked for. Each of them is
 * fetched by ourselves, under the rules of the repository itself; limits hold for all of it together. @throws JobError
 */
export async function obtainSource(
  root: Wanted,
  rootFolder: string,
  settings: HostSettings,
  { signal, log }: Run,
  limits: SourceLimits = sourceLimits,
): Promise<void> {
  await fetchSource(root, rootFolder, settings, signal, limits);
  const timeout = AbortSignal.timeout(extrasTimeoutMs);
  const run = { log, signal: AbortSignal.any([signal, timeout]) };
  const tally: Tally = { files: 0, bytes: 0 };
  let modules = 0;

  async function complete({ source, folder, path, depth }: Repository): Promise<void> {
    const wanted = { submodules: source.submodules ?? false, lfs: source.lfs ?? false };
    const pointers = await checkSource(folder, limits, wanted, tally);
    if (pointers.length > 0) {
      log(
        `Fetching ${pointers.length} ${pointers.length === 1 ? "file" : "files"} from Git LFS${ofModule(path)}.`,
      );
      await fetchLargeFiles(source, folder, pointers, settings, run.signal);
    }
    if (!wanted.submodules) return;
    for (const module of await submodulesOf(folder, run.signal)) {
      const inRoot = join(path, module.path);
      if (depth === moduleLimits.depth || ++modules > moduleLimits.count)
        throw new JobError(
          `The repository has more than ${moduleLimits.count} submodules, or they are nested more than ${moduleLimits.depth} levels deep: use fewer.`,
        );
      await within(inRoot, async () => {
        const address = moduleAddress(source.address, module.url, settings.insecureGitHosts);
        log(`Fetching submodule ${inRoot} from ${address} at ${module.commit.slice(0, 12)}.`);
        const inner = {
          ...source,
          address,
          branch: null,
          commit: module.commit,
          token: sharesToken(root.address, address) ? root.token : null,
        };
        const staging = `${rootFolder}.modules-${modules}`;
        await fetchSource(inner, staging, settings, run.signal, limits);
        await complete({ source: inner, folder: staging, path: inRoot, depth: depth + 1 });
        await placeSubmodule(folder, module.path, staging);
      });
    }
  }

  try {
    await complete({ source: root, folder: rootFolder, path: "", depth: 0 });
  } catch (error) {
    if (timeout.aborted && !signal.aborted)
      throw new JobError(
        "Submodules and Git LFS files took more than 5 minutes to fetch: use fewer of them.",
      );
    throw error;
  }
}

const ofModule = (path: string) => (path === "" ? "" : ` for submodule ${path}`);

/** A failure says in which submodule it was, once. */
async function within(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof JobError) || error.message.startsWith("Submodule ")) throw error;
    throw new JobError(`Submodule ${path}: ${error.message}`, { cause: error });
  }
}
