import type { Database, DatabaseActionAccepted, DatabasePatch } from "../../protocol/api/databases.ts";
import type { PackChanged } from "../../protocol/api/packs.ts";
import type { EnvChanged, Site, SiteActionAccepted, SitePatch } from "../../protocol/api/sites.ts";
import { call } from "./call.ts";
import type { Ctx } from "../ctx.ts";
import { findDatabase } from "../services/databases/find.ts";
import { findSite } from "../services/sites/find.ts";

/** Names and ids resolve only within the requesting account. */
export const siteNamed = async (ctx: Ctx, name: string): Promise<Site> =>
  call(ctx, "getSite", await findSite(ctx, name));
export const databaseNamed = async (ctx: Ctx, name: string): Promise<Database> =>
  call(ctx, "getDatabase", await findDatabase(ctx, name));

/** For callers that need only the id. */
export const siteId = async (ctx: Ctx, name: string): Promise<string> => (await findSite(ctx, name)).id;
export const databaseId = async (ctx: Ctx, name: string): Promise<string> =>
  (await findDatabase(ctx, name)).id;

/** Where an invoice is paid, by its token. */
export const payAt = (ctx: Ctx, token: string): string => `${ctx.config.SITE_URL}/invoice/${token}`;

/** What the operation answers to each kind of change: by its type, to any of them with any. */
type SiteAnswers = {
  action: SiteActionAccepted;
  settings: Site;
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

/** One sentence about everything attached to a site. */
export const reachOfSite = ({ status, domains, volumes, envVariables }: Site): string =>
  `It is ${status}; its own domains: ${listed(domains.map(({ domain }) => domain))}; volumes: ${listed(
    volumes.map(({ name }) => name),
  )}; variables: ${envVariables.length}.`;

/** One sentence about everything attached to a database, including the age of its last backup. */
export async function reachOfDatabase(ctx: Ctx, { id, status, links }: Database): Promise<string> {
  const { data } = await call(ctx, "listBackups", { id, limit: 100 });
  const last = data.find((backup) => backup.status === "VERIFIED" || backup.status === "STORED");
  const hours = last && Math.floor((ctx.now().getTime() - Date.parse(last.createdAt)) / 3_600_000);
  const age = hours === undefined ? "there is none" : hours < 1 ? "less than an hour old" : `${hours} h old`;
  return `It is ${status}; linked sites: ${links.length}; last backup: ${age}.`;
}

/** The last lines, optionally of those that contain a text. */
export const lastLines = <Line extends { text: string }>(
  lines: Line[],
  { tail = 100, search }: { tail?: number | undefined; search?: string | undefined },
): Line[] => (search === undefined ? lines : lines.filter(({ text }) => text.includes(search))).slice(-tail);
