import type { DeploymentExplanation, DeploymentStep, Fix } from "../../protocol/api/diagnosis.ts";
import type { DeploymentStatus } from "../../protocol/states.ts";

type Failed = {
  siteId: string;
  /** What was asked for instead of the newest commit of the site's branch. */
  ref: string | null;
  status: DeploymentStatus;
  error: string | null;
  durations: Record<"clone" | "build" | "start" | "swap", number | null>;
  startedAt: Date | null;
};
/** What fixes are made of. */
export type Around = {
  healthCheckPath: string | null;
  startTimeoutSeconds: number | null;
  /** The next larger pack; null: there is none. */
  largerPack: { id: string; name: string; memoryMb: number } | null;
  /** The latest deployment that can be rolled back to. */
  lastGood: { id: string; number: number } | null;
};
type Explained = Pick<
  DeploymentExplanation,
  "step" | "exitCode" | "outOfMemory" | "probe" | "cause" | "fixes"
>;

/** The step in which a deployment failed, from the steps that it has completed. */
export function stepOf({ error, durations, startedAt }: Failed): DeploymentStep {
  if (startedAt === null) return "queue";
  if (error?.startsWith("The release command ")) return "release";
  if (durations.swap !== null || durations.start !== null) return "probation";
  if (durations.build !== null) return "start";
  return durations.clone === null ? "clone" : "build";
}

const settings = (siteId: string, changed: object): Fix["input"] => ({ id: siteId, settings: changed });

type Cause = { code: string; sign: RegExp; fix?: (around: Around, found: string[], failed: Failed) => Fix[] };

const larger = ({ largerPack }: Around, _: string[], { siteId }: Failed): Fix[] =>
  largerPack === null
    ? []
    : [
        {
          summary: `Change to the pack ${largerPack.name} with ${largerPack.memoryMb} MB of memory; the difference is invoiced. Deploy again once it is paid.`,
          operation: "patchSite",
          input: { id: siteId, packId: largerPack.id },
        },
      ];

const again = (_: Around, __: string[], { siteId, ref }: Failed): Fix[] => [
  {
    summary: "Deploy again.",
    operation: "patchSite",
    input: { id: siteId, action: "deploy", ...(ref !== null && { ref }) },
  },
];

/** Known causes by what the error says; the first that fits is taken. `$1` of a sign is given to its fixes. */
const causes: Cause[] = [
  { code: "out_of_memory", sign: /used more memory than its pack has/, fix: larger },
  { code: "out_of_disk", sign: /wrote more than its pack's disk/ },
  {
    code: "build_out_of_memory",
    sign: /The build was killed, most likely because it used more|out of memory, of which a build has/,
  },
  {
    code: "wrong_port",
    sign: /Nothing listens on port \d+, but the app listens on (\d+)(?:, \d+)*: /,
    fix: (_, [port = ""], { siteId }) => [
      {
        summary: `Set the site's port to ${port}, then deploy again.`,
        operation: "patchSite",
        input: settings(siteId, { port: Number(port) }),
      },
    ],
  },
  {
    code: "listens_on_loopback",
    sign: /listens on 127\.0\.0\.1:\d+ only|but not at its IPv4 address|only: let it listen on 0\.0\.0\.0/,
  },
  { code: "development_server", sign: /starts? ?.{0,40}runs a development server|runs a development server/ },
  {
    code: "health_check_failed",
    sign: /The health check (\S+) did not succeed within (\d+) s/,
    fix: (around, [path = "", seconds = ""], { siteId }) => [
      {
        summary: `Accept any answer instead of a success of ${path}, then deploy again.`,
        operation: "patchSite",
        input: settings(siteId, { healthCheckPath: null }),
      },
      ...longer(around, Number(seconds), siteId),
    ],
  },
  {
    code: "not_listening",
    sign: /Nothing listens on port \d+ after (\d+) s/,
    fix: (around, [seconds = ""], { siteId }) => longer(around, Number(seconds), siteId),
  },
  {
    code: "missing_variable",
    sign: /set the (?:site's )?variable|looks for another server, such as its database/,
  },
  { code: "app_ended", sign: /The app exited with code 0\b/ },
  { code: "app_exited", sign: /The app (?:exited|was stopped)|exited .* and was stopped/ },
  { code: "release_failed", sign: /^The release command / },
  { code: "build_timeout", sign: /The build took more than/ },
  {
    code: "repository_unreadable",
    sign: /^(?:Submodule [^:]*: )?The (?:repository \S+ does not exist|Git host )|needs a token|could not be read|could not be fetched|Authentication failed/i,
  },
  {
    code: "source_missing",
    sign: /^(?:Submodule [^:]*: )?The (?:branch|commit|file|folder) .{1,300} (?:does not exist in|is not, or no longer, in) |is empty(?:, or its default branch is)?: push a commit/,
  },
  { code: "not_detected", sign: /^Found |^package\.json has / },
  { code: "build_failed", sign: /^The build (?:failed|left)\b/ },
  { code: "image_unavailable", sign: /could not be pulled|cannot be pulled|could not get/, fix: again },
  { code: "disk_full", sign: /out of free disk space|disk is full|disk space/i },
  { code: "no_host", sign: /^No host took this/, fix: again },
  { code: "host_interrupted", sign: /The host was interrupted|The host did not finish/, fix: again },
];

/** The known cause that an error names, and where. */
export const causeIn = (error: string) =>
  causes.map((cause) => ({ ...cause, match: cause.sign.exec(error) })).find(({ match }) => match !== null);

const longer = ({ startTimeoutSeconds }: Around, seconds: number, siteId: string): Fix[] => {
  const most = 600;
  const wanted = Math.min(most, 2 * Math.max(seconds, startTimeoutSeconds ?? 0));
  return wanted <= seconds
    ? []
    : [
        {
          summary: `Give the app ${wanted} seconds to answer, then deploy again.`,
          operation: "patchSite",
          input: settings(siteId, { startTimeoutSeconds: wanted }),
        },
      ];
};

/** Judges a failed deployment by its error, which the host or the service wrote. */
export function explainFailure(failed: Failed, around: Around): Explained {
  const error = failed.error ?? "";
  const exit = /exited with code (\d+)|exit code:? (\d+)|last with code (\d+)/.exec(error);
  const found = causeIn(error);
  const fixes = found?.fix?.(around, (found.match ?? []).slice(1), failed) ?? [];
  if (around.lastGood !== null)
    fixes.push({
      summary: `Roll back to deployment ${around.lastGood.number}, which was live.`,
      operation: "rollbackSite",
      input: { id: failed.siteId, deploymentId: around.lastGood.id },
    });
  return {
    step: stepOf(failed),
    exitCode: exit ? Number(exit[1] ?? exit[2] ?? exit[3]) : null,
    outOfMemory: found?.code === "out_of_memory" || found?.code === "build_out_of_memory",
    probe: /\(it ((?:answers|gave|failed|takes|does not|was not)[^)]{0,300})\)/.exec(error)?.[1] ?? null,
    cause: found ? { code: found.code, explanation: error } : null,
    fixes,
  };
}
