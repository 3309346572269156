import type { Backup } from "../../protocol/api/backups.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { Database, DatabaseActionAccepted, DatabasePatch } from "../../protocol/api/databases.ts";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { PackChanged } from "../../protocol/api/packs.ts";
import type {
  EnvChanged,
  Site,
  SiteActionAccepted,
  SiteInFull,
  SitePatch,
} from "../../protocol/api/sites.ts";
import type { DatabaseStatus, SiteStatus } from "../../protocol/states.ts";
import { call } from "./call.ts";
import type { Ctx } from "../ctx.ts";
import { conflict } from "../domain/app-error.ts";
import { refusedAction } from "../domain/refused-action.ts";
import { sha256Hex } from "../domain/tokens.ts";
import { findDatabase } from "../services/databases/find.ts";
import { everyItem } from "../services/page.ts";
import { findSite } from "../services/sites/find.ts";
import type { Consequence } from "./tool.ts";

/** Names and ids resolve only within the requesting account. */
export const siteNamed = async (ctx: Ctx, name: string): Promise<SiteInFull> =>
  call(ctx, "getSite", await findSite(ctx, name));
export const databaseNamed = async (ctx: Ctx, name: string): Promise<Database> =>
  call(ctx, "getDatabase", await findDatabase(ctx, name));

/** The account's site that a message is about: the one that it names, or else the only one; null: it is not clear which. */
export async function siteMeant(ctx: Ctx, message: string): Promise<string | null> {
  const words = new Set(message.toLowerCase().split(/[^a-z0-9_-]+/));
  const all: string[] = [];
  const named: string[] = [];
  for await (const { id, name } of everyItem((cursor) => call(ctx, "listSites", { limit: 100, cursor }))) {
    all.push(id);
    if (words.has(name) || words.has(id)) named.push(id);
  }
  const [meant = null, ...others] = named.length > 0 ? named : all;
  return others.length === 0 ? meant : null;
}

/** As many entries as a prompt has room for: a longer list is cut in the middle. */
const pageLength = 12;
type PageAsked = { name?: string | undefined; limit?: number | undefined; cursor?: string | undefined };

/** The page of a list that a model asks for. @param read pages of any length, whose cursors are ids */
export async function pageFor<Item extends { id: string; name: string }>(
  read: (cursor: string | undefined) => Promise<Page<Item>>,
  { name = "", limit = pageLength, cursor }: PageAsked,
): Promise<Page<Item>> {
  const data: Item[] = [];
  for await (const item of everyItem((next) => read(next ?? cursor))) {
    if (!item.name.includes(name)) continue;
    if (data.length === limit) return { data, nextCursor: data.at(-1)?.id ?? null };
    data.push(item);
  }
  return { data, nextCursor: null };
}

/** For callers that need only the id. */
export const siteId = async (ctx: Ctx, name: string): Promise<string> => (await findSite(ctx, name)).id;
export const databaseId = async (ctx: Ctx, name: string): Promise<string> =>
  (await findDatabase(ctx, name)).id;

/** Where an invoice is paid, by its token. */
export const payAt = (ctx: Ctx, token: string): string => `${ctx.config.SITE_URL}/invoice/${token}`;

/** What the operation answers to each kind of change: by its type, to any of them with any. */
type SiteAnswers = {
  action: SiteActionAccepted;
  settings: SiteInFull;
  envVariables: EnvChanged;
  packId: PackChanged;
};
type DatabaseAnswers = { action: DatabaseActionAccepted; backups: Database; packId: PackChanged };

export const changeSite = async <Kind extends keyof SiteAnswers>(
  ctx: Ctx,
  id: string,
  change: Extract<SitePatch, { [Key in Kind]: unknown }>,
): Promise<SiteAnswers[Kind]> => (await call(ctx, "patchSite", { id, ...change })) as SiteAnswers[Kind];
export const changeDatabase = async <Kind extends keyof DatabaseAnswers>(
  ctx: Ctx,
  id: string,
  change: Extract<DatabasePatch, { [Key in Kind]: unknown }>,
): Promise<DatabaseAnswers[Kind]> =>
  (await call(ctx, "patchDatabase", { id, ...change })) as DatabaseAnswers[Kind];

const listed = (items: string[]): string => (items.length === 0 ? "none" : items.join(", "));

/** A sentence about what is attached to a resource, and what it is told from: an age in it changes by itself. */
type Reach = { text: string; facts: unknown };

/**
 * What a person is asked to confirm. It holds for what it says and for these facts: once one of them is another, nothing is
 * done.
 */
export const asks = (says: string, facts: unknown, reach?: Reach): Consequence => ({
  summary: reach ? `${says} ${reach.text}` : says,
  version: sha256Hex(JSON.stringify([says, facts, reach?.facts])),
});

/** Nobody is asked for what can only be refused. @throws AppError conflict */
export function refuseInVain(
  action: "stop" | "restart",
  what: "site" | "database",
  status: SiteStatus | DatabaseStatus,
  { from }: { from: readonly string[] },
): void {
  if (!from.includes(status)) throw conflict(refusedAction(action, { what, status, wanted: "RUNNING" }));
}

/** @param says returns what would happen to the site of this name, which keeps these volumes, also some that its settings no longer name */
export async function asksAboutSite(
  ctx: Ctx,
  name: string,
  says: (site: Site, volumes: string[]) => string,
): Promise<Consequence> {
  const site = await siteNamed(ctx, name);
  const { data } = await call(ctx, "listVolumes", { id: site.id });
  const volumes = data.map((volume) => volume.name);
  return asks(says(site, volumes), [site.id, site.updatedAt], await reachOfSite(ctx, site, volumes));
}

/** @param says returns what would happen to the database of this name */
export async function asksAboutDatabase(
  ctx: Ctx,
  name: string,
  says: (database: Database) => string | Promise<string>,
  facts?: unknown,
): Promise<Consequence> {
  const database = await databaseNamed(ctx, name);
  return asks(
    await says(database),
    [database.id, database.updatedAt, facts],
    await reachOfDatabase(ctx, database),
  );
}

/** Including the databases that are linked to it, and the age of the last backup of each of its volumes. */
async function reachOfSite(ctx: Ctx, site: Site, volumes: string[]): Promise<Reach> {
  const { id, status, domains, envVariables } = site;
  const [databases, backups] = await Promise.all([linkedTo(ctx, site), lastOfVolumes(ctx, id, volumes)]);
  const stored = volumes.map((name) => `${name} (last backup: ${ageOf(ctx, backups.get(name))})`);
  return {
    text: [
      `It is ${status}; its own domains: ${listed(domains.map(({ domain }) => domain))}`,
      `linked databases: ${listed(databases.map(({ name }) => name))}`,
      `volumes: ${listed(stored)}`,
      `variables: ${envVariables.length}.`,
    ].join("; "),
    facts: [
      [status, volumes, envVariables],
      [...domains, ...databases, ...backups.values()].map(({ id }) => id),
    ],
  };
}

async function linkedTo(ctx: Ctx, { id }: Site): Promise<Database[]> {
  const linked: Database[] = [];
  for await (const database of everyItem((cursor) => call(ctx, "listDatabases", { limit: 100, cursor })))
    if (database.links.some(({ siteId }) => siteId === id)) linked.push(database);
  return linked;
}

/** By the volume's name. */
async function lastOfVolumes(ctx: Ctx, siteId: string, volumes: string[]): Promise<Map<string, Backup>> {
  const last = new Map<string, Backup>();
  if (volumes.length === 0) return last;
  const backups = everyItem((cursor) => call(ctx, "listAllBackups", { siteId, limit: 100, cursor }));
  for await (const backup of backups) {
    const name = backup.volume?.name;
    if (name !== undefined && isGood(backup) && !last.has(name)) last.set(name, backup);
    if (volumes.every((volume) => last.has(volume))) break;
  }
  return last;
}

/** Including the age of its last backup. */
async function reachOfDatabase(ctx: Ctx, { id, status, links }: Database): Promise<Reach> {
  const last = (await call(ctx, "listBackups", { id, limit: 100 })).data.find(isGood);
  return {
    text: `It is ${status}; linked sites: ${links.length}; last backup: ${ageOf(ctx, last)}.`,
    facts: [status, links, last?.id],
  };
}

/** Data can be restored from it. */
export const isGood = ({ status }: Backup): boolean => status === "VERIFIED" || status === "STORED";

export const hoursSince = (ctx: Ctx, at: string): number =>
  Math.floor((ctx.now().getTime() - Date.parse(at)) / 3_600_000);

function ageOf(ctx: Ctx, backup: Backup | undefined): string {
  if (!backup) return "there is none";
  const hours = hoursSince(ctx, backup.createdAt);
  return hours < 1 ? "less than an hour old" : `${hours} h old`;
}

type LinesAsked = { tail?: number | undefined; search?: string | undefined };

/** The last lines, optionally of those that contain a text. */
export const lastLines = <Line extends { text: string }>(
  lines: Line[],
  { tail = 100, search }: LinesAsked,
): Line[] => (search === undefined ? lines : lines.filter(({ text }) => text.includes(search))).slice(-tail);

/** The same of a stored log, which is read page by page. */
export async function endOfLog(
  ctx: Ctx,
  operation: "getDeploymentLogs" | "getCommandLogs",
  id: string,
  asked: LinesAsked,
): Promise<string[]> {
  let lines: LogLine[] = [];
  for (let cursor = 0; ;) {
    const page = await call(ctx, operation, { id, cursor });
    if (page instanceof ReadableStream) return [];
    lines = lastLines([...lines, ...page.data], asked);
    if (page.nextCursor === null) return lines.map(({ text }) => text);
    cursor = Number(page.nextCursor);
  }
}
