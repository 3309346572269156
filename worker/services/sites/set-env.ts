import type { ById } from "../../../protocol/api/common.ts";
import { and, eq } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { EnvVariable, EnvVariableShown } from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import { authorOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databaseLinks, siteEnvVersions } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { idIn } from "../owned.ts";
import { forgetOldEnv } from "./forget-env.ts";
import { requireKept, siteById } from "./owned.ts";
import { newestEnv, shownEnv } from "./view.ts";

const maxVariables = 500;
/** The limit for all stored variables together, since a job sends them to the host in one message. */
const maxEnvBytes = 256 * 1024;
/** In each round, at least one of the concurrent changes succeeds. */
const maxRounds = 20;

type Changed = { envVariables: EnvVariableShown[]; restartRequired: boolean };

/**
 * Creates a new version of the environment: sets entries by key and removes those with the value null, unless there are
 * none to remove. Secret values are sealed.
 */
export async function setSiteEnv(
  ctx: Ctx,
  { id: siteId, envVariables: changes }: ById & { envVariables: EnvVariable[] },
): Promise<Changed> {
  for (let round = 0; round < maxRounds; round++) {
    const changed = await tryToSet(ctx, siteId, changes);
    if (changed) return changed;
  }
  throw conflict("The environment was changed concurrently. Try again.");
}

/** The site, the newest version of its environment, and the variables that links to databases set. */
export const readsOfEnv = (ctx: Ctx, id: Id<"site">) => ({
  found: siteById(ctx, id),
  newest: ctx.db
    .select()
    .from(siteEnvVersions)
    .where(and(eq(siteEnvVersions.siteId, id), newestEnv)),
  links: ctx.db
    .select({ variable: databaseLinks.variable })
    .from(databaseLinks)
    .where(eq(databaseLinks.siteId, id)),
});

/** null: another change came first, and this one must be applied to its result. */
async function tryToSet(ctx: Ctx, siteId: string, changes: EnvVariable[]): Promise<Changed | null> {
  const id = idIn("site", siteId);
  const {
    found: [found],
    newest: [newest],
    links,
  } = await batch(ctx, readsOfEnv(ctx, id));
  const site = requireKept(ctx, found);
  const linked = changes.find(
    ({ key, value }) => value !== null && links.some(({ variable }) => variable === key),
  );
  if (linked)
    throw conflict(
      `${linked.key} is set by the link to a database. Remove the link first, or use another variable.`,
    );
  const entries = new Map<string, EnvEntry>((newest?.entries ?? []).map((entry) => [entry.key, entry]));
  if (changes.every(({ key, value }) => value === null && !entries.has(key)))
    return { envVariables: [...entries.values()].map(shownEnv), restartRequired: false };
  for (const { key, value, ...change } of changes)
    if (value === null) entries.delete(key);
    else entries.set(key, changedEntry(ctx, site.id, { key, value, ...change }, entries.get(key)));
  if (entries.size > maxVariables)
    throw conflict(`A site can have at most ${maxVariables} variables. Remove some first.`);
  const next = [...entries.values()];
  if (bytesOf(next) > Math.max(maxEnvBytes, bytesOf(newest?.entries ?? [])))
    throw invalid(
      "envVariables",
      `The variables of a site can have at most ${maxEnvBytes / 1024} KiB in total, and this change exceeds the limit. Remove some, or store large values in a file or volume.`,
    );
  if (!(await addEnvVersion(ctx, site.id, { version: (newest?.version ?? 0) + 1, entries: next })))
    return null;
  return { envVariables: next.map(shownEnv), restartRequired: site.currentDeploymentId !== null };
}

/** What is not in the change stays as it was, such as a secret's value. @throws AppError invalid_request */
function changedEntry(
  ctx: Ctx,
  siteId: Id<"site">,
  { key, value, encrypted, scope }: EnvVariable,
  before: EnvEntry | undefined,
): EnvEntry {
  const secret = encrypted ?? before?.secret ?? false;
  const entry = { key, scope: scope ?? before?.scope ?? "both", secret };
  if (value === undefined && before && before.secret === secret) return { ...entry, value: before.value };
  const plain = value ?? (before?.secret === false ? before.value : undefined);
  if (plain === undefined)
    throw invalid(
      "envVariables",
      before
        ? `${key} is a secret, which is never shown again. To make it readable, give it a value.`
        : `There is no variable ${key} whose value could be kept: give it a value.`,
    );
  return { ...entry, value: secret ? ctx.secrets.seal(plain, `site_env:${siteId}:${key}`) : plain };
}

type Version = Pick<typeof siteEnvVersions.$inferInsert, "version" | "entries" | "restoredFrom">;

/** @returns false if this version exists: versions are unique per site, so that no concurrent change is lost */
export async function addEnvVersion(ctx: Ctx, siteId: Id<"site">, version: Version): Promise<boolean> {
  const { made } = await batch(ctx, {
    made: ctx.db
      .insert(siteEnvVersions)
      .values({ siteId, ...version, ...authorOf(ctx), createdAt: ctx.now() })
      .onConflictDoNothing()
      .returning({ version: siteEnvVersions.version }),
    forgetOldEnv: forgetOldEnv(ctx, siteId),
  });
  return made.length > 0;
}

const bytesOf = (entries: EnvEntry[]): number => Buffer.byteLength(JSON.stringify(entries));
