import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { accessLogVolume } from "../ingress/access-log.ts";
import type { Ingress } from "../ingress/ingress.ts";
import { servingOf } from "../ingress/ingress.ts";
import { under } from "../ingress/table.ts";
import { log } from "../log.ts";
import { entriesIn, type Entry } from "./access-log-lines.ts";
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
            entriesIn(lines).flatMap((entry) => reading.seenIn(entry) ?? []),
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

/** Host names kept of one look: visitors may invent as many as they like under a wildcard. */
const maxNames = 1000;

/** Of one look: names and containers are looked up once. */
class Reading {
  private readonly ingress: Means["ingress"];
  private readonly sites = new Map<string, string>();
  /** By what visitors name, with the port. */
  private readonly named = new Map<string, { host: string; siteId: string | undefined }>();
  /** By site, then by what Caddy sent it on to. */
  private readonly answered = new Map<string, Map<string, Answered>>();

  constructor(ingress: Means["ingress"]) {
    this.ingress = ingress;
    for (const siteId of ingress.sites())
      for (const name of ingress.hostnames(siteId)) this.sites.set(name.toLowerCase(), siteId);
  }

  /** null: of no site that is here. */
  seenIn(entry: Entry): SeenRequest | null {
    const sentTo = entry.upstream ?? "";
    // Passed on to the host where the site is now, which has it in its own log.
    if (/^[hw]f[0-9a-f]{16}\.up\./.test(sentTo)) return null;
    const { host, siteId } = this.siteOf(entry.host);
    if (siteId === undefined) return null;
    const queryAt = entry.uri.indexOf("?");
    return {
      siteId,
      atMs: entry.ts / 1e6,
      method: entry.method,
      host,
      path: queryAt < 0 ? entry.uri : entry.uri.slice(0, queryAt),
      query: queryAt < 0 ? null : entry.uri.slice(queryAt + 1),
      status: entry.status,
      durationUs: Math.round(entry.duration / 1000),
      bytesIn: entry.bytes_read,
      bytesOut: entry.size,
      address: entry.address,
      referrer: entry.referrer || null,
      userAgent: entry.agent || null,
      ...this.answeredBy(siteId, sentTo, entry.served),
      requestId: entry.uuid || null,
    };
  }

  private siteOf(hostport: string) {
    let found = this.named.get(hostport);
    if (!found) {
      const host = hostport.replace(/:\d+$/, "").toLowerCase();
      if (this.named.size >= maxNames) this.named.clear();
      this.named.set(hostport, (found = { host, siteId: under(this.sites, host) }));
    }
    return found;
  }

  private answeredBy(siteId: string, upstream: string, served: string | null | undefined): Answered {
    let ofSite = this.answered.get(siteId);
    if (!ofSite) this.answered.set(siteId, (ofSite = new Map()));
    // A WebSocket of a site with rules: the responder's name for it says what it was opened to.
    const isSocket = upstream.startsWith("wi");
    const sentTo = isSocket ? upstream : (served ?? upstream);
    let found = ofSite.get(sentTo);
    if (!found) ofSite.set(sentTo, (found = this.answeredAt(siteId, sentTo)));
    return found;
  }

  private answeredAt(siteId: string, sentTo: string): Answered {
    const [, ofSocket] = /^wi[0-9a-f]{16}-([0-9a-z]+)\.up\.internal\.?:/.exec(sentTo) ?? [];
    if (ofSocket !== undefined) return { deploymentId: `dep_${ofSocket}`, replica: null };
    const [, dashed, port] = /^[hw](\d+-\d+-\d+-\d+)\.up\.internal\.?:(\d+)$/.exec(sentTo) ?? [];
    const targets = servingOf(this.ingress, siteId);
    const index = targets.findIndex(
      (target) => target.address.replaceAll(".", "-") === dashed && target.port === Number(port),
    );
    const target = targets[index];
    if (!target) return { deploymentId: null, replica: null };
    return { deploymentId: target.deploymentId ?? null, replica: targets.length > 1 ? index + 1 : null };
  }
}

type Answered = Pick<SeenRequest, "deploymentId" | "replica">;
