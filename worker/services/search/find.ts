import { sql, type SQL } from "drizzle-orm";
import type { Found, SearchQuery, SearchResults } from "../../../protocol/api/search.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { searchWords } from "../../domain/search-words.ts";

/** Results of each kind. */
const most = 8;

/** What belongs to the caller and is called so; for operators, accounts and hosts as well. One round trip. */
export async function search(ctx: Ctx, { q }: SearchQuery): Promise<SearchResults> {
  const { text, commit, deployment } = searchWords(q);
  const accountId = accountOf(ctx);
  const isOperator =
    (ctx.actor.type === "key" || ctx.actor.type === "session") && ctx.actor.role === "operator";
  const has = (...columns: SQL[]): SQL =>
    sql`(${sql.join(
      columns.map((column) => sql`instr(lower(coalesce(${column}, '')), ${text}) > 0`),
      sql` OR `,
    )})`;
  /** The whole name first, then what begins so, then the newest. */
  const best = (name: SQL, id: SQL): SQL =>
    sql`ORDER BY lower(${name}) = ${text} DESC, instr(lower(${name}), ${text}) = 1 DESC, ${id} DESC LIMIT ${most}`;
  const asked = {
    sites: sql`
      SELECT 'site' AS type, id, name AS title, coalesce(github_url, image) AS detail, status, NULL AS siteId
      FROM sites WHERE account_id = ${accountId} AND (id = ${text} OR ${has(sql`name`, sql`slug`, sql`github_url`, sql`image`)})
      ${best(sql`name`, sql`id`)}`,
    databases: sql`
      SELECT 'database' AS type, id, name AS title, type AS detail, status, NULL AS siteId
      FROM databases WHERE account_id = ${accountId} AND (id = ${text} OR ${has(sql`name`)}) ${best(sql`name`, sql`id`)}`,
    domains: sql`
      SELECT 'domain' AS type, d.id, d.name AS title, s.name AS detail,
        CASE WHEN d.verified_at IS NULL THEN 'PENDING_VERIFICATION' ELSE d.state END AS status, s.id AS siteId
      FROM sites s JOIN domains d ON d.site_id = s.id
      WHERE s.account_id = ${accountId} AND (d.id = ${text} OR ${has(sql`d.name`)}) ${best(sql`d.name`, sql`d.id`)}`,
    deployments:
      (commit !== null || deployment !== null || text.startsWith("dep_")) &&
      sql`
      SELECT 'deployment' AS type, d.id, s.name || ' #' || d.number AS title,
        nullif(trim(coalesce(substr(d.commit_sha, 1, 7), '') || ' ' || coalesce(d.commit_message, '')), '') AS detail, d.status, s.id AS siteId
      FROM sites s JOIN deployments d ON d.site_id = s.id
      WHERE s.account_id = ${accountId} AND (${sql.join(
        [
          sql`d.id = ${text}`,
          ...(commit ? [sql`(d.commit_sha >= ${commit.from} AND d.commit_sha < ${commit.to})`] : []),
          ...(deployment
            ? [sql`(d.number = ${deployment.number} AND instr(s.name, ${deployment.site}) > 0)`]
            : []),
        ],
        sql` OR `,
      )})
      ORDER BY d.id DESC LIMIT ${most}`,
    invoices: sql`
      SELECT 'invoice' AS type, id, lines ->> '$[0].description' AS title,
        printf('%.2f %s', amount_cents / 100.0, upper(currency)) AS detail, status, NULL AS siteId
      FROM invoices WHERE account_id = ${accountId} AND (id = ${text} OR ${has(sql`lines ->> '$[0].description'`)})
      ORDER BY id DESC LIMIT ${most}`,
    accounts:
      isOperator &&
      sql`
      SELECT 'account' AS type, id, email AS title, name AS detail, NULL AS status, NULL AS siteId
      FROM accounts WHERE id = ${text} OR ${has(sql`email`, sql`name`)} ${best(sql`email`, sql`id`)}`,
    hosts:
      isOperator &&
      sql`
      SELECT 'host' AS type, id, name AS title, region AS detail, status, NULL AS siteId
      FROM hosts WHERE status <> 'REMOVED' AND (id = ${text} OR ${has(sql`name`)}) ${best(sql`name`, sql`id`)}`,
  };
  const statements = Object.fromEntries(
    Object.entries(asked).flatMap(([name, query]) => (query === false ? [] : [[name, ctx.statement(query)]])),
  ) as Record<string, ReturnType<Ctx["statement"]>>;
  const found = await batch(ctx, statements);
  return { data: Object.values(found).flatMap(({ results }) => results as Found[]) };
}
