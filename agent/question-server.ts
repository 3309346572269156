import { isDeepStrictEqual } from "node:util";
import {
  maxFailingChecks,
  unfitAnswer,
  type FailingCheck,
  type FromAgent,
  type ToAgent,
} from "../protocol/agent/messages.ts";
import type { DatabaseVolumes, Kept } from "../protocol/agent/inventory.ts";
import type { Id } from "../protocol/ids.ts";
import type { Answer, Question, SiteLogLine } from "../protocol/agent/running.ts";
import type { HostUsage } from "../protocol/api/hosts.ts";
import { metricsWindows } from "../protocol/api/running.ts";
import type { CertificateReport } from "./ingress/certificate.ts";
import type { Ingress } from "./ingress/ingress.ts";
import { log } from "./log.ts";
import { siteLabels, volumeName } from "./docker/specs.ts";
import type { Inspection } from "./databases/inspect/index.ts";
import type { InspectSource } from "./image-build/inspect/index.ts";
import type { Condition } from "./running/condition.ts";
import { reportDisk } from "./running/disk-report.ts";
import type { DiskUse } from "./running/disk-use.ts";
import type { NearLimit } from "./running/limit-warnings.ts";
import { bytesOf } from "./running/line-batches.ts";
import { databaseCrashes, databaseCrashKnown } from "./running/databases-out.ts";
import type { Crash, DatabaseCrash, Records } from "./running/records.ts";
import { NotShown, NotThere } from "./running/browse.ts";
import { browseSite } from "./running/site-files.ts";
import { followRequests } from "./running/follow-requests.ts";
import type { RequestRecords } from "./running/request-records.ts";
import { searchLog } from "./running/search-log.ts";
import { lookAtSite } from "./running/look.ts";
import { followSiteLog, readSiteLog, type SiteLogs } from "./running/site-log.ts";
import { label } from "./docker/labels.ts";

/** Messages about running sites, not about jobs. */
export type AboutRunning = Extract<
  ToAgent,
  { type: "ask" | "endAsk" | "answerAck" | "crashAck" | "databaseCrashAck" }
>;
export const isAboutRunning = (message: ToAgent): message is AboutRunning =>
  message.type === "ask" ||
  message.type === "endAsk" ||
  message.type === "answerAck" ||
  message.type === "crashAck" ||
  message.type === "databaseCrashAck";

type Owned = Id<"site" | "database">;
export type Means = SiteLogs & {
  ingress: Ingress;
  records: Records;
  requests: RequestRecords;
  diskUse: Pick<DiskUse, "soon" | "databases">;
  imageRepository: (siteId: string) => string;
  inspect: Inspection;
  /** Of the ingress. */
  certificate(
    asked: Extract<Question, { kind: "certificate" }>,
    signal: AbortSignal,
  ): Promise<CertificateReport>;
  inspectSource: InspectSource;
  machine: () => Promise<HostUsage>;
  /** The free disk space of the engine; null if the agent cannot see it. */
  diskFreeMb: () => Promise<number | null>;
  /** For sites and databases, whether a record knows them or not. */
  kept: {
    held(): Promise<{ ids: Owned[]; databases: DatabaseVolumes[] }>;
    of(ids: readonly Owned[]): Promise<Kept[]>;
    remove(id: Owned): Promise<boolean>;
    volumesOf(databases: readonly DatabaseVolumes[]): Promise<Kept[]>;
    removeVolumes(database: DatabaseVolumes): Promise<boolean>;
  };
};

/** Unacknowledged crashes are reported again after this. */
const resendAfterMs = 30_000;
const batchBytes = 64 * 1024;
/** How long the sizes of volumes are cached, and how long a question waits for them. */
const sizesKeptMs = 5000;
const sizesWithinMs = 6000;

/**
 * Answers questions about running sites and repositories while the asking link is open, and reports crashes until they are
 * acknowledged.
 */
export class QuestionServer {
  private readonly means: Means;
  private send: (message: FromAgent) => boolean = () => false;
  private readonly asked = new Map<string, AbortController>();
  /** Called for each answer to a question that the control plane acknowledges. */
  private readonly acknowledged = new Map<string, () => void>();
  /** Null: not known since the agent began, and the control plane still knows what failed before. */
  private failing: FailingCheck[] | null = null;
  private condition: Condition | null = null;
  /** What came near a limit while the link was down, the last of each resource and limit. */
  private readonly untold = new Map<string, NearLimit>();
  private resend: NodeJS.Timeout | undefined;

  constructor(means: Means) {
    this.means = means;
  }

  /** @param send whether the message was fit to be sent */
  connected(send: (message: FromAgent) => boolean): void {
    this.send = send;
    this.reportCondition();
    this.reportCrashes();
    this.measured();
    this.reportFailing();
    this.reportLimits();
    this.resend = setInterval(() => this.reportCrashes(), resendAfterMs);
  }

  disconnected(): void {
    this.send = () => false;
    clearInterval(this.resend);
    for (const asking of this.asked.values()) asking.abort();
    this.asked.clear();
    this.acknowledged.clear();
  }

  receive(message: AboutRunning): void {
    switch (message.type) {
      case "ask":
        return this.take(message.requestId, message.question);
      case "endAsk":
        this.asked.get(message.requestId)?.abort();
        this.asked.delete(message.requestId);
        this.acknowledged.delete(message.requestId);
        return;
      case "answerAck":
        return this.acknowledged.get(message.requestId)?.();
      case "crashAck":
        return note(() => this.means.records.forgetCrash(message));
      case "databaseCrashAck":
        return note(() => databaseCrashKnown(this.means.records, message));
      default:
        message satisfies never;
    }
  }

  crashed(crash: Crash | DatabaseCrash): void {
    this.send(crash);
  }

  /** Call when it is known which health checks fail, and when that changes, with all that fail. */
  checked(failing: readonly FailingCheck[]): void {
    this.failing = failing.slice(0, maxFailingChecks);
    this.reportFailing();
  }

  private reportFailing(): void {
    if (this.failing !== null) this.send({ type: "failingChecks", sites: this.failing });
  }

  /** Call with each look at the host's condition. */
  inCondition(condition: Condition): void {
    if (isDeepStrictEqual(condition, this.condition)) return;
    this.condition = condition;
    this.reportCondition();
  }

  private reportCondition(): void {
    if (this.condition !== null) this.send({ type: "condition", ...this.condition });
  }

  limitNear(near: NearLimit): void {
    if (!this.send({ type: "limitNear", ...near })) this.untold.set(`${near.of} ${near.resourceId}`, near);
  }

  private reportLimits(): void {
    for (const near of this.untold.values()) this.send({ type: "limitNear", ...near });
    this.untold.clear();
  }

  /** Call after databases were measured. */
  measured(): void {
    const databases = this.means.diskUse.databases();
    if (databases.length > 0) this.send({ type: "diskUse", databases });
  }

  /** Crashes of sites that serve again or are gone are not reported. */
  private reportCrashes(): void {
    const { ingress, records } = this.means;
    for (const { crash, isOut } of records.crashes())
      if (!isOut) continue;
      else if (ingress.current(crash.siteId) === "parked") this.send(crash);
      else note(() => records.forgetCrash(crash));
    databaseCrashes(this.means)
      .then((crashes) => crashes.forEach((crash) => this.send(crash)))
      .catch((error) => log("error", "A database's crash was not reported", { error }));
  }

  private take(requestId: string, question: Question): void {
    const asking = new AbortController();
    this.asked.set(requestId, asking);
    const { signal } = asking;
    const say = (answer: Answer, last: boolean) => {
      if (signal.aborted) return;
      if (last) this.asked.delete(requestId);
      const ack = !last && "window" in question && question.window !== undefined;
      if (this.send({ type: "answer", requestId, answer, last, ...(ack && { ack }) })) return;
      this.send({ type: "answer", requestId, answer: unfitAnswer, last: true });
      this.receive({ type: "endAsk", requestId });
    };
    const onAcknowledged = (callback: () => void) => void this.acknowledged.set(requestId, callback);
    this.answer(question, signal, { say, onAcknowledged }).catch((error: unknown) => {
      if (signal.aborted) return;
      if (error instanceof NotShown) {
        const isMissing = error instanceof NotThere && { isMissing: true as const };
        return say({ kind: "refused", error: error.message, ...isMissing }, true);
      }
      // Not the question itself: it may contain a login.
      log("error", "A question was not answered", { kind: question.kind, error });
      say({ kind: "refused", error: "The host could not answer: try again." }, true);
      asking.abort();
    });
  }

  private async volumesOf(siteId: string): Promise<Extract<Answer, { kind: "volumes" }>["volumes"]> {
    const disk = await this.means.diskUse.soon(siteId, sizesKeptMs, sizesWithinMs);
    if (disk) return disk.volumes;
    const volumes = await this.means.engine.volumes(siteLabels(siteId));
    return volumes.map(({ labels }) => ({ name: labels[label.volume] ?? "", sizeMb: null }));
  }

  private async answer(
    question: Question,
    signal: AbortSignal,
    {
      say,
      onAcknowledged,
    }: { say: (answer: Answer, last: boolean) => void; onAcknowledged: (callback: () => void) => void },
  ): Promise<void> {
    const { records } = this.means;
    switch (question.kind) {
      case "insight":
      case "schema":
      case "query":
      case "endSession":
        return say(await this.means.inspect(question, signal), true);
      case "machine":
        return say({ kind: "machine", usage: await this.means.machine() }, true);
      case "source":
        return say({ kind: "source", found: await this.means.inspectSource(question, signal) }, true);
      case "searchLog": {
        const found = await searchLog(this.means, question.siteId, question, signal);
        return say({ kind: "searchLog", ...found }, true);
      }
      case "health":
        return say({ kind: "health", health: await lookAtSite(this.means, question, signal) }, true);
      case "metrics":
        return say(
          {
            kind: "metrics",
            samples: records.samples(question.siteId, question.window),
            intervalSeconds: metricsWindows[question.window].intervalSeconds,
          },
          true,
        );
      case "events":
        return say({ kind: "events", events: records.events(question.siteId) }, true);
      case "requests": {
        const { requests } = this.means;
        const { siteId, filters, place, limit } = question;
        if (question.follow)
          return followRequests(requests, { siteId, filters, after: place }, signal, (found) =>
            say({ kind: "requests", requests: found }, false),
          );
        return say({ kind: "requests", requests: requests.before(siteId, filters, place, limit) }, true);
      }
      case "requestStats": {
        const { siteId, window } = question;
        const stats = this.means.requests.stats(siteId, window, Date.now());
        return say({ kind: "requestStats", stats }, true);
      }
      case "files":
        return say({ kind: "files", found: await browseSite(this.means, question) }, true);
      case "volumes":
        return say({ kind: "volumes", volumes: await this.volumesOf(question.siteId) }, true);
      case "disk":
        return say({ kind: "disk", found: await reportDisk(this.means, question.ids) }, true);
      case "certificate":
        return say({ kind: "certificate", ...(await this.means.certificate(question, signal)) }, true);
      case "removeVolume":
        if (await this.means.engine.removeVolume(volumeName(question.siteId, question.name)))
          return say({ kind: "removeVolume" }, true);
        return say({ kind: "refused", error: volumeInUse }, true);
      case "held":
        return say({ kind: "held", ...(await this.means.kept.held()) }, true);
      case "kept":
        return say({ kind: "kept", kept: await this.means.kept.of(question.ids) }, true);
      case "removeKept":
        if (await this.means.kept.remove(question.id)) return say({ kind: "removeKept" }, true);
        return say({ kind: "refused", error: stillRuns }, true);
      case "keptVolumes":
        return say({ kind: "kept", kept: await this.means.kept.volumesOf(question.databases) }, true);
      case "removeKeptVolumes":
        if (await this.means.kept.removeVolumes(question.database)) return say({ kind: "removeKept" }, true);
        return say({ kind: "refused", error: databaseRunsOnIt }, true);
      case "logs": {
        const { siteId } = question;
        if (question.follow)
          return followSiteLog(this.means, siteId, question, {
            signal,
            deliver: (lines) => say({ kind: "logs", lines }, false),
            window: question.window ?? null,
            onAcknowledged,
          });
        const lines = await readSiteLog(this.means, siteId, question);
        const parts = inParts(lines);
        for (const [index, part] of parts.entries())
          say({ kind: "logs", lines: part }, index === parts.length - 1);
        return;
      }
      default:
        question satisfies never;
    }
  }
}

/** On a full disk nothing can be written, which must not end the agent: it is told once more. */
function note(write: () => void): void {
  try {
    write();
  } catch (error) {
    log("error", "It was not written down that a crash is known", { error });
  }
}

const volumeInUse =
  "A container still uses this volume, such as a version that is draining: try again in a few minutes.";

const databaseRunsOnIt =
  "The database still runs on this volume: restart it, so that it runs on the volume that its record names.";

const stillRuns = "Part of it still runs on the host: it is set aside first, within ten minutes.";

/** At least one part, none larger than a message should be. */
function inParts(lines: SiteLogLine[]): SiteLogLine[][] {
  const parts: SiteLogLine[][] = [[]];
  let bytes = 0;
  for (const line of lines) {
    bytes += bytesOf(line);
    if (bytes > batchBytes) {
      parts.push([]);
      bytes = bytesOf(line);
    }
    parts.at(-1)?.push(line);
  }
  return parts;
}
