import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import http from "node:http";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { HostIngressRules } from "../../protocol/api/ingress.ts";
import type { Ingress, Target } from "./ingress.ts";
import { log } from "../log.ts";
import { refreshMs } from "./caddy.ts";
import { emptyTable, RouteTable } from "./table.ts";
import { writeWithSpare } from "../write-atomically.ts";

/** What was read later than this after now was read by a clock that was ahead, and outdates nothing. */
const clockDifferenceMs = 60_000;

/**
 * The agent's side of the ingress: one file, replaced atomically; a call returns when no new request sees the old state.
 * @param found sites that have containers here. Where the file is damaged or gone, any of these may serve
 */
export function openRoutes(
  file: string,
  statusPort: number,
  found: readonly string[] = [],
  patienceMs = 60_000,
): Ingress {
  mkdirSync(dirname(file), { recursive: true });
  let table = read(file) ?? beginAnew(file, found);
  /** The version that requests see, all of them. */
  let seenVersion = -1;

  /** @param told which site this says all of: the responder takes it, or nothing has changed */
  async function change(
    edit: (
      sites: RouteTable["sites"],
      rules: NonNullable<RouteTable["rules"]>,
      said: NonNullable<RouteTable["told"]>,
      forwards: NonNullable<RouteTable["forwards"]>,
    ) => void,
    told?: string,
  ): Promise<void> {
    const before = table;
    const next = structuredClone(table);
    const rules = next.rules ?? {};
    const said = next.told ?? {};
    const forwards = next.forwards ?? {};
    edit(next.sites, rules, said, forwards);
    if (next.rules !== undefined || Object.keys(rules).length > 0) next.rules = rules;
    if (next.told !== undefined || Object.keys(said).length > 0) next.told = said;
    if (next.forwards !== undefined || Object.keys(forwards).length > 0) next.forwards = forwards;
    if (next.lost) next.lost = next.lost.filter((siteId) => siteId !== told);
    replace(next);
    const { version } = table;
    if (version === seenVersion) return;
    try {
      await loaded(statusPort, version, patienceMs);
      seenVersion = Math.max(seenVersion, version);
    } catch (error) {
      if (told !== undefined) takeBack(told, before, next);
      throw error;
    }
  }

  const isOutdated = (siteId: string, readAtMs = Infinity): boolean => {
    const toldAtMs = table.told?.[siteId]?.readAtMs ?? -Infinity;
    return readAtMs < toldAtMs && toldAtMs < Date.now() + clockDifferenceMs;
  };

  function replace(next: RouteTable): void {
    if (JSON.stringify(next) === JSON.stringify(table)) return;
    // Never an earlier number, also when the file was lost and the responder still knows one.
    next.version = Math.max(table.version + 1, Date.now());
    writeWithSpare(file, JSON.stringify(next));
    table = next;
  }

  /** Of this site only: others may have changed meanwhile. */
  function takeBack(siteId: string, before: RouteTable, after: RouteTable): void {
    const next = structuredClone(table);
    const site = before.sites[siteId];
    if (site) next.sites[siteId] = site;
    else delete next.sites[siteId];
    next.rules = restored(siteId, table.rules, before.rules, after.rules);
    next.told = restored(siteId, table.told, before.told, after.told);
    next.forwards = restored(siteId, table.forwards, before.forwards, after.forwards);
    if (before.lost?.includes(siteId)) next.lost = [...(next.lost ?? []), siteId];
    replace(next);
  }

  return {
    route: (siteId, hostnames, [target = null, ...others]) =>
      change((sites, _rules, _told, forwards) => {
        sites[siteId] = { hostnames: [...hostnames], target, others };
        delete forwards[siteId];
      }, siteId),
    routeOnProbation: (siteId, hostnames, [target = null, ...others]) =>
      change((sites, _rules, _told, forwards) => {
        delete forwards[siteId];
        const now = sites[siteId];
        const before = now?.before === undefined ? answeredBy(now) : now.before;
        sites[siteId] = { hostnames: [...hostnames], target, others, before };
      }, siteId),
    async settle(siteId) {
      const next = structuredClone(table);
      delete next.sites[siteId]?.before;
      const isSeen = table.version === seenVersion;
      replace(next);
      // Only the agent reads what was kept.
      if (isSeen) seenVersion = table.version;
      return Promise.resolve();
    },
    takeBack: (siteId, [target = null, ...others]) =>
      change((sites) => {
        const site = sites[siteId];
        if (site?.before === undefined) return;
        if (site.before === null) delete sites[siteId];
        else sites[siteId] = { ...site.before, hostnames: site.hostnames, target, others };
      }, siteId),
    fallback(siteId) {
      const before = table.sites[siteId]?.before;
      return before === undefined ? null : before === null ? [] : targetsOf(before);
    },
    park: (siteId, hostnames, notice) =>
      change((sites) => {
        sites[siteId] = { hostnames: [...hostnames], target: null, others: [], ...(notice && { notice }) };
      }, siteId),
    rule: (siteId, settings, readAtMs) =>
      change((_, rules) => {
        if (!isOutdated(siteId, readAtMs)) setRules(rules, siteId, settings);
      }),
    tell: (siteId, { hostnames, ingress, readAtMs }) =>
      change((sites, rules, told) => {
        if (isOutdated(siteId, readAtMs)) return;
        if (ingress) setRules(rules, siteId, ingress);
        const site = sites[siteId];
        if (site) site.hostnames = [...hostnames];
        if (readAtMs !== undefined) told[siteId] = { readAtMs, hostnames: [...hostnames] };
      }),
    newest: (siteId, { hostnames, readAtMs }) =>
      isOutdated(siteId, readAtMs) ? (table.told?.[siteId]?.hostnames ?? hostnames) : hostnames,
    readdress: (targets) =>
      change((sites) => {
        const now = new Map(targets.map((one) => [one.containerId, one]));
        for (const site of Object.values(sites))
          for (const answered of [site, site.before]) {
            if (!answered?.target) continue;
            const [target = null, ...others] = targetsOf(answered).map(
              (one) => now.get(one.containerId) ?? one,
            );
            Object.assign(answered, { target, others });
          }
      }),
    withdraw: (siteId, containerId) =>
      change((sites) => {
        const site = sites[siteId];
        if (!site || targetsOf(site).every((target) => target.containerId !== containerId)) return;
        const { before } = site;
        delete site.before;
        Object.assign(site, { target: null, others: [], ...before });
      }),
    unroute: (siteId) =>
      change((sites, rules, told, forwards) => {
        for (const each of [sites, rules, told, forwards]) delete each[siteId];
      }, siteId),
    forward: (wanted) =>
      change((_sites, _rules, _told, forwards) => {
        for (const siteId of Object.keys(forwards)) delete forwards[siteId];
        Object.assign(forwards, structuredClone(wanted));
      }),
    current(siteId) {
      const site = table.sites[siteId];
      return site ? (site.target ? targetsOf(site) : "parked") : null;
    },
    sites: () => Object.keys(table.sites),
    hostnames: (siteId) => table.sites[siteId]?.hostnames ?? [],
    lost: () => table.lost ?? [],
  };
}

type Site = RouteTable["sites"][string];

/** With the site's entry of before a change, unless it is no longer as the change left it: what came meanwhile is newer. */
function restored<T>(
  siteId: string,
  now: Record<string, T> | undefined,
  before: Record<string, T> | undefined,
  after: Record<string, T> | undefined,
): Record<string, T> | undefined {
  const entry = before?.[siteId];
  const isAsLeft = JSON.stringify(now?.[siteId]) === JSON.stringify(after?.[siteId]);
  return entry !== undefined && isAsLeft ? { ...now, [siteId]: entry } : now;
}

function setRules(rules: NonNullable<RouteTable["rules"]>, siteId: string, settings: HostIngressRules): void {
  if (Object.keys(settings).length > 0) rules[siteId] = settings;
  else delete rules[siteId];
}

const targetsOf = ({ target, others }: Pick<Site, "target" | "others">): Target[] =>
  target ? [target, ...others] : [];

const answeredBy = (site: Site | undefined): Exclude<Site["before"], undefined> =>
  site ? { target: site.target, others: site.others, ...(site.notice && { notice: site.notice }) } : null;

function read(file: string): RouteTable | null {
  try {
    return RouteTable.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    // Not there on a new host either.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT")
      log("error", "What the ingress leads to cannot be read; it is kept aside", { file, error });
    return null;
  }
}

/** Written down at once, as the next agent is to know it too. */
function beginAnew(file: string, found: readonly string[]): RouteTable {
  if (existsSync(file)) renameSync(file, `${file}.damaged`);
  if (found.length === 0) return emptyTable;
  log("error", "It is not known which containers serve: all stay until each site is told anew", { found });
  const table: RouteTable = { version: Date.now(), sites: {}, lost: [...found] };
  writeWithSpare(file, JSON.stringify(table));
  return table;
}

/** Waits until the responder answers from this version, and Caddy can hold no older answer. */
async function loaded(statusPort: number, version: number, patienceMs: number): Promise<void> {
  const began = performance.now();
  for (let attempt = 0; ; attempt++) {
    const known = await versionOf(statusPort).catch(() => -1);
    if (known >= version) break;
    if (performance.now() - began > patienceMs) throw new Error("The ingress responder does not answer");
    await delay(Math.min(2 + attempt, 100));
  }
  await delay(refreshMs);
}

const versionOf = async (statusPort: number): Promise<number> =>
  Number(await askResponder(statusPort, "/.berth/version"));

/** @throws Error if it does not answer within a second */
export function askResponder(statusPort: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get(
      { host: "127.0.0.1", port: statusPort, path, agent: false, timeout: 1000 },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () => resolve(text)).on("error", reject);
      },
    );
    request.on("timeout", () => request.destroy(new Error("no answer"))).on("error", reject);
  });
}
