import { sql, type SQL } from "drizzle-orm";
import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { SealedFor, SealedPlace } from "../../domain/sealed-places.ts";

export type SealedRow = { key: string; text: string };

/** How to iterate over a place in the order of `key`, and how to update a row. */
type Place = {
  rowsAfter: (key: string, limit: number) => SQL;
  /** The row's text with each sealed value replaced. */
  replace: (row: SealedRow, by: (sealed: string, place: SealedFor) => string) => string;
  /** Succeeds only if the row is unchanged since it was read. */
  update: (row: SealedRow, text: string) => SQL;
};

function column(place: SealedPlace, table: string, name: string): Place {
  const [at, of] = [sql.raw(name), sql.raw(table)];
  return {
    rowsAfter: (key, limit) =>
      sql`SELECT id AS key, ${at} AS text FROM ${of} WHERE id > ${key} AND ${at} IS NOT NULL ORDER BY id LIMIT ${limit}`,
    replace: ({ key, text }, by) => by(text, `${place}:${key}`),
    update: ({ key, text }, next) =>
      sql`UPDATE ${of} SET ${at} = ${next} WHERE id = ${key} AND ${at} = ${text}`,
  };
}

/** The sealed passwords in a database's row; each is bound to its generation. */
type Passwords = { generation: number; current: string; next: string | null; previous: string | null };
const passwordsText = sql.raw(`json_object('generation', generation, 'current', password_sealed,
  'next', next_password_sealed, 'previous', previous_password_sealed)`);

const versionOf = (key: string): [siteId: string, version: number] => {
  const [siteId = "", version] = key.split(":");
  return [siteId, Number(version ?? 0)];
};

export const places: Record<SealedPlace, Place> = {
  "sites.git_token": column("sites.git_token", "sites", "git_token_sealed"),
  "sites.registry_password": column("sites.registry_password", "sites", "registry_password_sealed"),
  "databases.admin_password": column("databases.admin_password", "databases", "admin_password_sealed"),
  "databases.password": {
    rowsAfter: (key, limit) =>
      sql`SELECT id AS key, ${passwordsText} AS text FROM databases WHERE id > ${key} ORDER BY id LIMIT ${limit}`,
    replace({ key, text }, by) {
      const { generation, current, next, previous } = JSON.parse(text) as Passwords;
      const again = (sealed: string | null, of: number) =>
        sealed && by(sealed, `databases.password:${key}:${of}`);
      return JSON.stringify({
        generation,
        current: again(current, generation),
        next: again(next, generation + 1),
        previous: again(previous, generation - 1),
      });
    },
    update({ key, text }, changed) {
      const { current, next, previous } = JSON.parse(changed) as Passwords;
      return sql`UPDATE databases SET password_sealed = ${current}, next_password_sealed = ${next},
        previous_password_sealed = ${previous} WHERE id = ${key} AND ${passwordsText} = ${text}`;
    },
  },
  idempotent_requests: column("idempotent_requests", "idempotent_requests", "response_sealed"),
  acme_accounts: column("acme_accounts", "acme_accounts", "key_sealed"),
  peer_authorities: column("peer_authorities", "peer_authorities", "key_sealed"),
  "certificates.key": column("certificates.key", "certificates", "key_sealed"),
  "certificates.order_key": column("certificates.order_key", "certificates", "order_key_sealed"),
  "notification_channels.url": column("notification_channels.url", "notification_channels", "url_sealed"),
  "notification_channels.secret": column(
    "notification_channels.secret",
    "notification_channels",
    "secret_sealed",
  ),
  site_env: {
    rowsAfter(key, limit) {
      const [siteId, version] = versionOf(key);
      return sql`SELECT site_id || ':' || version AS key, entries AS text FROM site_env_versions
        WHERE (site_id, version) > (${siteId}, ${version}) ORDER BY site_id, version LIMIT ${limit}`;
    },
    replace({ key, text }, by) {
      const [siteId] = versionOf(key);
      const entries = (JSON.parse(text) as EnvEntry[]).map((entry) =>
        entry.secret ? { ...entry, value: by(entry.value, `site_env:${siteId}:${entry.key}`) } : entry,
      );
      return JSON.stringify(entries);
    },
    update({ key, text }, next) {
      const [siteId, version] = versionOf(key);
      return sql`UPDATE site_env_versions SET entries = ${next}
        WHERE site_id = ${siteId} AND version = ${version} AND entries = ${text}`;
    },
  },
};
