import { and, eq, isNull, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { volumeOf } from "../../domain/volume-keys.ts";
import { dataKeyOf } from "../../jobs/backups/object-keys.ts";
import { idIn } from "../owned.ts";
import { requireSigned, type SignedLink } from "./link.ts";

/** The single range that a header requests; undefined: the whole file, since unsupported headers may be ignored. */
function rangeOf(
  header: string | undefined,
  sizeBytes: number,
): { offset: number; length: number } | "none" | undefined {
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "");
  if (!found || (found[1] === "" && found[2] === "")) return undefined;
  const last = sizeBytes - 1;
  const from = found[1] === "" ? Math.max(0, sizeBytes - Number(found[2])) : Number(found[1]);
  const to = found[1] === "" || found[2] === "" ? last : Math.min(last, Number(found[2]));
  return from > to || from > last ? "none" : { offset: from, length: to - from + 1 };
}

type Found = Pick<
  typeof backups.$inferSelect,
  "accountId" | "databaseId" | "id" | "attempt" | "sizeBytes" | "sha256"
>;

/** Answers with the stored object or the requested range. */
export async function answerData(
  ctx: Ctx,
  row: Found,
  range: string | undefined,
  also: Record<string, string> = {},
): Promise<Response> {
  const sizeBytes = (await ctx.backups.sizeOf(dataKeyOf(row))) ?? 0;
  const part = rangeOf(range, sizeBytes);
  if (part === "none")
    return Response.json(
      { error: "range_not_satisfiable" },
      { status: 416, headers: { "Content-Range": `bytes */${sizeBytes}` } },
    );
  const body = await ctx.backups.read(dataKeyOf(row), part);
  if (!body) throw new AppError("not_found");
  const headers = {
    "Content-Type": "application/octet-stream",
    "Content-Length": String(part?.length ?? sizeBytes),
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-store",
    // Identifies the same bytes across range requests.
    ETag: `"${row.sha256}"`,
    ...also,
  };
  return part
    ? new Response(body, {
        status: 206,
        headers: {
          ...headers,
          "Content-Range": `bytes ${part.offset}-${part.offset + part.length - 1}/${sizeBytes}`,
        },
      })
    : new Response(body, { headers });
}

/** Serves the file to anyone with a signed URL. */
export async function downloadBackup(
  ctx: Ctx,
  backupId: string,
  link: SignedLink,
  range: string | undefined,
): Promise<Response> {
  const id = idIn("backup", backupId);
  await requireSigned(ctx, id, link);
  const [row] = await ctx.db
    .select()
    .from(backups)
    .where(
      and(
        eq(backups.id, id),
        sql`(status IN ('STORED', 'VERIFIED') OR status = 'FAILED' AND sha256 IS NOT NULL)`,
        isNull(backups.removedAt),
      ),
    );
  if (!row) throw new AppError("not_found");
  const at = row.createdAt.toISOString().slice(0, 16).replace(":", "");
  const volume = volumeOf(row.databaseId);
  const fileName = volume ? `${row.name}-${volume.name}` : row.name;
  const extension = row.type === "volume" ? "tar.gz" : databaseEngines[row.type].backupExtension;
  const digest = Buffer.from(row.sha256 ?? "", "hex").toString("base64");
  return answerData(ctx, row, range, {
    "Content-Disposition": `attachment; filename="${fileName}-${at}Z.${extension}"`,
    // RFC 9530: the digest of the whole file, even for a range.
    "Repr-Digest": `sha-256=:${digest}:`,
  });
}
