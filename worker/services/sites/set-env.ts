import { and, eq } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { EnvVariable, EnvVariableShown } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { databaseLinks, siteEnvVersions } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { forgetOldEnv } from "./forget-env.ts";
import { siteById, siteIdOf } from "./owned.ts";
import { newestEnv, shownEnv } from "./view.ts";

const maxVariables = 500;
/** Of all of them as they are stored: a job carries them to the host in one frame. */
const maxEnvBytes = 256 * 1024;
/** In each round at least one of the changes made at the same moment comes through. */
const maxRounds = 20;

type Changed = { envVariables: EnvVariableShown[]; restartRequired: boolean };

/** A new version of the environment: entries by key are set, those with value null removed. Secret values are sealed. */
export async function setSiteEnv(ctx: Ctx, siteId: string, changes: EnvVariable[]): Promise<Changed> {
  for (let round = 0; round < maxRounds; round++) {
    const changed = await tryToSet(ctx, siteId, changes);
    if (changed) return changed;
  }
  throw conflict("The environment was changed by others at the same moment: try again.");
}

/** null: another change came first, and this one is to be made to what it left. */
async function tryToSet(ctx: Ctx, siteId: string, changes: EnvVariable[]): Promise<Changed | null> {
  const id = siteIdOf(siteId);
  const [[found], [newest], links] = await ctx.db.batch([
    siteById(ctx, id),
    ctx.db
      .select()
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, id), newestEnv)),
    ctx.db
      .select({ variable: databaseLinks.variable })
      .from(databaseLinks)
      .where(eq(databaseLinks.siteId, id)),
  ]);
  const site = requireOwned(ctx, found);
  const linked = changes.find(
    ({ key, value }) => value !== null && links.some(({ variable }) => variable === key),
  );
  if (linked)
    throw conflict(
      `${linked.key} is the address of a database that the site is linked to: take the link away first, or name another variable.`,
    );
  const entries = new Map<string, EnvEntry>((newest?.entries ?? []).map((entry) => [entry.key, entry]));
  for (const { key, value, encrypted, scope } of changes) {
    if (value === null) {
      entries.delete(key);
      continue;
    }
    const before = entries.get(key);
    // Whoever replaces a secret's value does not want the new one shown, nor one for builds given to the site.
    const secret = encrypted ?? before?.secret ?? false;
    const kept = secret ? ctx.secrets.seal(value, `site_env:${site.id}:${key}`) : value;
    entries.set(key, { key, value: kept, scope: scope ?? before?.scope ?? "both", secret });
  }
  if (entries.size > maxVariables)
    throw conflict(`A site has at most ${maxVariables} variables: remove some first.`);
  const next = [...entries.values()];
  if (bytesOf(next) > Math.max(maxEnvBytes, bytesOf(newest?.entries ?? [])))
    throw invalid(
      "envVariables",
      `A site's variables have at most ${maxEnvBytes / 1024} KiB in all, with these they would have more: remove some, or keep large values in a file or volume.`,
    );
  // The version is unique per site: of two changes at once, none is lost.
  const [[made]] = await ctx.db.batch([
    ctx.db
      .insert(siteEnvVersions)
      .values({ siteId: site.id, version: (newest?.version ?? 0) + 1, entries: next, createdAt: ctx.now() })
      .onConflictDoNothing()
      .returning({ version: siteEnvVersions.version }),
    forgetOldEnv(ctx, site.id),
  ]);
  if (!made) return null;
  return { envVariables: next.map(shownEnv), restartRequired: site.currentDeploymentId !== null };
}

const bytesOf = (entries: EnvEntry[]): number => Buffer.byteLength(JSON.stringify(entries));
