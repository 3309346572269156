import { eq, sql } from "drizzle-orm";
import type { System } from "../../../protocol/api/system.ts";
import { signsInWithGitHub } from "../../adapters/auth.ts";
import { canMail } from "../../adapters/mail.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { packs, processorReadings, timerRuns } from "../../db/schema.ts";
import { setupOf } from "../../domain/setup-steps.ts";
import { version } from "../../version.ts";
import { getDns } from "../dns/get.ts";
import { getSettings } from "../settings/read.ts";
import { countOldSecrets } from "../secrets/count-old.ts";

/** How the installation is set up, and what is still to be done. */
export async function getSystem(ctx: Ctx): Promise<System> {
  const { config, secrets, payments } = ctx;
  const [{ signUp }, dns, underOldKeys, storeError, programs, found] = await Promise.all([
    getSettings(ctx),
    getDns(ctx),
    countOldSecrets(ctx),
    errorOfStore(ctx),
    ctx.hostPrograms(),
    batch(ctx, {
      hosts: ctx.db
        .select({
          up: sql<number>`(SELECT count(*) FROM hosts WHERE status <> 'REMOVED' AND connected_at IS NOT NULL AND offline_since IS NULL)`.as(
            "up",
          ),
          lastEventAt: sql<number | null>`(SELECT max(received_at) FROM processor_events)`.as(
            "last_event_at",
          ),
          sitePacks: sql<number>`count(*)`.as("site_packs"),
        })
        .from(packs)
        .where(sql`kind = 'site' AND active`),
      readings: ctx.db.select().from(processorReadings).where(eq(processorReadings.processor, payments.name)),
      timer: ctx.db.select().from(timerRuns).limit(1),
    }),
  ]);
  const [facts] = found.hosts;
  const lastEventAt = facts?.lastEventAt ?? null;
  const [keyId, ...oldKeyIds] = secrets.keyIds;
  const system = {
    version,
    agentVersion: programs?.agentVersion ?? null,
    siteUrl: config.SITE_URL,
    webhookHost: config.WEBHOOK_HOST,
    sitesOrigin: config.SITES_ORIGIN,
    signUp,
    signInWithGitHub: signsInWithGitHub(config),
    dns,
    mail: { configured: canMail(config), from: config.MAIL_FROM ?? null },
    payments: {
      processor: payments.name,
      live: payments.isLive && payments.name !== "test",
      lastEventAt: lastEventAt === null ? null : new Date(lastEventAt).toISOString(),
      eventsReadAt: found.readings[0]?.readAt.toISOString() ?? null,
    },
    backupStore: { error: storeError },
    assistant: { model: config.MODEL_URL === undefined ? null : (config.MODEL_NAME ?? null) },
    secrets: {
      keyId,
      oldKeyIds,
      underOldKeys,
      tokenKey: config.TOKEN_KEY !== undefined,
      tokensUnderOldKeys: config.SECRET_KEYS_OLD.some((old) => old !== config.TOKEN_KEY),
    },
  };
  return {
    ...system,
    setup: setupOf({
      ...system,
      now: ctx.now(),
      timerRanAt: found.timer[0]?.ranAt ?? null,
      hostsUp: facts?.up ?? 0,
      sitePacks: facts?.sitePacks ?? 0,
    }),
  };
}

/** Asks for an object that need not be there. */
const errorOfStore = (ctx: Ctx): Promise<string | null> =>
  ctx.backups.sizeOf("health-check").then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
