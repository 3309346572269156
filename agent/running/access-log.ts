import * as z from "zod";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { accessLogVolume, seenFields } from "../ingress/access-log.ts";
import type { Ingress, Target } from "../ingress/ingress.ts";
import { servingOf } from "../ingress/ingress.ts";
import { under } from "../ingress/table.ts";
import { log } from "../log.ts";
import { readAccessLog } from "./access-log-reader.ts";
import { every } from "./every.ts";
import type { RequestRecords, SeenRequest } from "./request-records.ts";

type Means = {
  engine: Pick<Engine, "volumes">;
  ingress: Pick<Ingress, "sites" | "hostnames" | "current" | "lost">;
  requests: RequestRecords;
  agentId: string;
  folder?: string;
};

/** What Caddy is told to write (`ingress/access-log.ts`). Its zero for a status: no answer was begun. */
const Entry = z.object({
  /** In nanoseconds. */
  ts: z.number(),
  duration: z.number().nonnegative(),
  size: z.int().nonnegative(),
  status: z.int().min(0).max(999),
  bytes_read: z.int().nonnegative(),
  seen: z
    .string()
    .transform((text) => text.split("\n"))
    .refine((fields) => fields.length === seenFields.length),
  uuid: z.string().nullish(),
  upstream: z.string().nullish(),
  /** Of a site with rules: what Caddy sent it on to, once it was decided on. */
  served: z.string().nullish(),
});
type Entry = z.infer<typeof Entry>;

const rollUpEveryMs = 60_000;

/**
 * Takes sites' requests from Caddy's log. What cannot be read is left to the next look, so nothing is lost but what Caddy removes
 * before it is read.
 */
export class AccessLog {
  private readonly means: Means;
  private folder: string | null;
  private rolledUpAtMs = -Infinity;
  private isTold = false;

  constructor(means: Means) {
    this.means = means;
    this.folder = means.folder ?? null;
  }

  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, async () => {
      try {
        await this.look(signal);
        this.isTold = false;
      } catch (error) {
        if (!this.isTold && !signal.aborted)
          log("error", "The ingress's log cannot be read; sites have no request statistics meanwhile", {
            error,
          });
        this.isTold = true;
      }
    });
  }

  async look(signal: AbortSignal): Promise<void> {
    const { requests, ingress } = this.means;
    this.folder ??= await this.find();
    if (this.folder !== null) {
      const reading = new Reading(ingress);
      await readAccessLog(
        this.folder,
        requests.position(),
        async (lines, position) => {
          requests.take(
            lines.flatMap((line) => reading.seenIn(line) ?? []),
            position,
          );
          // Other work of the agent has its turn.
          await new Promise((resolve) => setImmediate(resolve));
        },
        signal,
      );
    }
    if (performance.now() - this.rolledUpAtMs < rollUpEveryMs) return;
    this.rolledUpAtMs = performance.now();
    requests.keepOnly([...ingress.sites(), ...ingress.lost()]);
    await requests.rollUp(Date.now());
  }

  private async find(): Promise<string | null> {
    const name = accessLogVolume(this.means.agentId);
    const volumes = await this.means.engine.volumes({ [label.ingress]: this.means.agentId });
    return volumes.find((volume) => volume.name === name)?.folder ?? null;
  }
}

/** Of one look: names and containers are looked up once. */
class Reading {
  private readonly ingress: Means["ingress"];
  private readonly sites = new Map<string, string>();
  private readonly targets = new Map<string, readonly Target[]>();

  constructor(ingress: Means["ingress"]) {
    this.ingress = ingress;
    for (const siteId of ingress.sites())
      for (const name of ingress.hostnames(siteId)) this.sites.set(name.toLowerCase(), siteId);
  }

  /** null: of no site that is here. */
  seenIn(line: string): SeenRequest | null {
    const entry = entryIn(line);
    if (!entry) return null;
    // Passed on to the host where the site is now, which has it in its own log.
    if (/^[hw]f[0-9a-f]{16}\.up\./.test(entry.upstream ?? "")) return null;
    const [method = "", hostport = "", uri = "", address = "", agent, referrer] = entry.seen;
    const host = hostport.replace(/:\d+$/, "").toLowerCase();
    const siteId = under(this.sites, host);
    if (siteId === undefined) return null;
    const [path = "", ...query] = uri.split("?");
    return {
      siteId,
      atMs: entry.ts / 1e6,
      method,
      host,
      path,
      query: query.length > 0 ? query.join("?") : null,
      status: entry.status,
      durationUs: Math.round(entry.duration / 1000),
      bytesIn: entry.bytes_read,
      bytesOut: entry.size,
      address,
      referrer: referrer || null,
      userAgent: agent || null,
      ...this.answeredBy(siteId, entry),
      requestId: entry.uuid || null,
    };
  }

  private answeredBy(
    siteId: string,
    { upstream, served }: Entry,
  ): Pick<SeenRequest, "deploymentId" | "replica"> {
    let targets = this.targets.get(siteId);
    if (!targets) this.targets.set(siteId, (targets = servingOf(this.ingress, siteId)));
    // A WebSocket of a site with rules: the responder's name for it says what it was opened to.
    const [, ofSocket] = /^wi[0-9a-f]{16}-([0-9a-z]+)\.up\.internal\.?:/.exec(upstream ?? "") ?? [];
    if (ofSocket !== undefined) return { deploymentId: `dep_${ofSocket}`, replica: null };
    const [, dashed, port] =
      /^[hw](\d+-\d+-\d+-\d+)\.up\.internal\.?:(\d+)$/.exec(served ?? upstream ?? "") ?? [];
    const index = targets.findIndex(
      (target) => target.address.replaceAll(".", "-") === dashed && target.port === Number(port),
    );
    const target = targets[index];
    if (!target) return { deploymentId: null, replica: null };
    return { deploymentId: target.deploymentId ?? null, replica: targets.length > 1 ? index + 1 : null };
  }
}

/** null: half a line, as after Caddy was killed, or not of Caddy's access log. */
function entryIn(line: string): Entry | null {
  try {
    return Entry.parse(JSON.parse(line));
  } catch {
    return null;
  }
}
