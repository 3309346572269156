import * as z from "zod";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { stepNames } from "../../../protocol/deployment-steps.ts";
import { Status } from "../kit/parts.tsx";
import { deploymentWords, type Word } from "../kit/words.ts";

export const isUnderWay = ({ status }: Pick<Deployment, "status">): boolean =>
  status === "QUEUED" || status === "BUILDING" || status === "STARTING";

/** How deployments begin, as their owner would say it. */
export const triggerWords: Record<Deployment["trigger"], string> = {
  payment: "the payment",
  api: "you",
  webhook: "a push",
  rollback: "you, a rollback",
  chat: "the assistant",
  renewal: "the renewal",
  move: "a move to another machine",
};

/** Who or what a deployment began by: an API key by its name. */
export function askedBy({ trigger, key }: Pick<Deployment, "trigger" | "key">): string {
  if (key === null) return triggerWords[trigger];
  const name = `${key.origin === "device" ? "the command line" : "the key"} “${key.name}”`;
  return trigger === "rollback" ? `${name}, a rollback` : name;
}

type OfSite = {
  deployment: Pick<Deployment, "id" | "status">;
  site: Pick<Site, "status" | "currentDeployment">;
};
/** Only the version of a site that serves is "in service": a stopped or failed site has none. */
export function deploymentWord({ deployment: { status, id }, site }: OfSite): Word {
  const serves =
    (site.status === "RUNNING" || site.status === "DEPLOYING") && site.currentDeployment?.id === id;
  return status === "LIVE" && !serves ? { tone: "soft", label: "Not running" } : deploymentWords[status];
}
export const DeploymentState = (one: OfSite) => <Status {...deploymentWord(one)} />;

/** From the request to the outcome, waiting included; null: not over yet. */
export const wholeMs = ({ createdAt, finishedAt }: Deployment): number | null =>
  finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(createdAt);

export type Step = {
  name: string;
  label: string;
  state: "done" | "now" | "failed" | "skipped" | "ahead" | "missed" | "perhaps";
  ms: number | null;
};

/** The steps of a deployment with what each took; what is under way or has failed took what the others leave of the whole. */
export function stepsOf(deployment: Deployment, now: Date): Step[] {
  const { startedAt, createdAt, finishedAt, durations, status, commit, rollbackOf } = deployment;
  const waited = startedAt === null ? null : Math.max(0, Date.parse(startedAt) - Date.parse(createdAt));
  const known: [name: string, label: string, ms: number | null][] = [
    ["wait", "Wait for a slot", waited],
    ["fetch", stepNames.clone, durations.clone],
    ["build", stepNames.build, durations.build],
    ["start", stepNames.start, durations.start],
    ["switch", stepNames.swap, durations.swap],
  ];
  const lastKnown = known.findLastIndex(([, , ms]) => ms !== null);
  // Hosts report what each step took only at the end; until then its status, and its commit once it is fetched, say which one goes on.
  const reached =
    status === "STARTING" ? "start" : status === "BUILDING" && commit && !rollbackOf ? "build" : "wait";
  const current = Math.max(
    lastKnown + 1,
    known.findIndex(([name]) => name === reached),
  );
  const passed = (finishedAt === null ? now.getTime() : Date.parse(finishedAt)) - Date.parse(createdAt);
  const rest = Math.max(0, passed - known.reduce((sum, [, , ms]) => sum + (ms ?? 0), 0));
  return known.map(([name, label, ms], index) => {
    if (ms !== null) return { name, label, ms, state: "done" };
    if (index < lastKnown || status === "LIVE" || status === "SUPERSEDED")
      return { name, label, ms, state: "skipped" };
    // A host that has the image neither fetches nor builds, and says so only at the end.
    if (rollbackOf && (name === "fetch" || name === "build") && isUnderWay(deployment))
      return { name, label, ms, state: "perhaps" };
    if (isUnderWay(deployment))
      return {
        name,
        label,
        // The time of a build is not that of its start.
        ms: index === current && reached !== "start" ? rest : null,
        state: index < current ? "done" : index === current ? "now" : "ahead",
      };
    return index === lastKnown + 1 && status === "FAILED"
      ? { name, label, ms: rest, state: "failed" }
      : { name, label, ms, state: "missed" };
  });
}

const settingNames: Readonly<Record<string, string>> = {
  port: "Port",
  startCommand: "Start command",
  healthCheckPath: "Health check path",
  healthCheck: "Health check",
  replicas: "Replicas",
  lifecycle: "Restarts and stops",
  volumes: "Volumes",
  githubUrl: "Repository",
  branch: "Branch",
  submodules: "Submodules",
  lfs: "Large files (LFS)",
  dockerfile: "Dockerfile",
  image: "Image",
  rootDir: "Folder of the app",
  dockerfilePath: "Dockerfile path",
  buildCommand: "Build command",
  buildOptions: "Build options",
};
/** A setting as the forms name it. */
export const settingName = (setting: string): string => settingNames[setting] ?? setting;
const Volumes = z.array(z.object({ name: z.string(), mountPath: z.string() }));
export function shownValue(value: unknown): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return "not set";
  if (typeof value === "string") return value;
  const volumes = Volumes.safeParse(value).data;
  return volumes?.map(({ name, mountPath }) => `${name} in ${mountPath}`).join(", ") ?? JSON.stringify(value);
}
export const changeWords = { added: "added", changed: "changed", removed: "removed" };
