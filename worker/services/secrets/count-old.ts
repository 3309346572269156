import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { sealedPlaces, type SealedPlace } from "../../domain/sealed-places.ts";

/** @param isOld a condition on a sealed text */
const rowsUnder = (isOld: (sealed: string) => SQL): Record<SealedPlace, SQL> => ({
  "sites.git_token": sql`sites WHERE ${isOld("git_token_sealed")}`,
  "sites.registry_password": sql`sites WHERE ${isOld("registry_password_sealed")}`,
  site_env: sql`site_env_versions v WHERE EXISTS (SELECT 1 FROM json_each(v.entries) e
    WHERE e.value ->> 'secret' AND ${isOld("e.value ->> 'value'")})`,
  "databases.admin_password": sql`databases WHERE ${isOld("admin_password_sealed")}`,
  "databases.password": sql`databases WHERE ${isOld("password_sealed")} OR ${isOld("next_password_sealed")}
    OR ${isOld("previous_password_sealed")}`,
  idempotent_requests: sql`idempotent_requests WHERE ${isOld("response_sealed")}`,
  acme_accounts: sql`acme_accounts WHERE ${isOld("key_sealed")}`,
  peer_authorities: sql`peer_authorities WHERE ${isOld("key_sealed")}`,
  "certificates.key": sql`certificates WHERE ${isOld("key_sealed")}`,
  "certificates.order_key": sql`certificates WHERE ${isOld("order_key_sealed")}`,
  "notification_channels.url": sql`notification_channels WHERE ${isOld("url_sealed")}`,
  "notification_channels.secret": sql`notification_channels WHERE ${isOld("secret_sealed")}`,
});

/** How many rows of each place are not under the current key; without those of 0. */
export async function countOldSecrets(ctx: Ctx): Promise<{ place: SealedPlace; rows: number }[]> {
  const head = `v2.${ctx.secrets.keyIds[0]}.`;
  const of = rowsUnder((sealed) => sql`substr(${sql.raw(sealed)}, 1, ${head.length}) <> ${head}`);
  const counts = sealedPlaces.map(
    (place, index) => sql`(SELECT count(*) FROM ${of[place]}) AS ${columnOf(index)}`,
  );
  // D1 allows five terms in a UNION.
  const [found = {}] = await ctx.db.all<Record<string, number>>(sql`SELECT ${sql.join(counts, sql`, `)}`);
  return sealedPlaces
    .map((place, index) => ({ place, rows: found[`place${index}`] ?? 0 }))
    .filter(({ rows }) => rows > 0);
}

const columnOf = (index: number) => sql.raw(`place${index}`);
