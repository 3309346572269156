import type { SecretsRotate, SecretsRotated } from "../../../protocol/api/secrets.ts";
import type { Ctx } from "../../ctx.ts";
import { invalid } from "../../domain/app-error.ts";
import { sealedPlaces, type SealedFor, type SealedPlace } from "../../domain/sealed-places.ts";
import { places, type SealedRow } from "./places.ts";

/** Re-seals one page of values from older keys with the current key. Can be repeated and interrupted at any point. */
export async function rotateSecrets(ctx: Ctx, { limit, cursor }: SecretsRotate): Promise<SecretsRotated> {
  const [place, after] = cursor === undefined ? [sealedPlaces[0], ""] : positionOf(cursor);
  const { rowsAfter, update } = places[place];
  const rows = await ctx.db.all<SealedRow>(rowsAfter(after, limit));
  const results = rows.map((row) => ({ row, ...resealed(ctx, place, row) }));
  const changed = results.filter(({ count }) => count > 0);
  const written = await Promise.all(
    changed.map(async ({ row, text, count }) => {
      const { meta } = await ctx.db.run(update(row, text));
      return meta.changes > 0 ? count : 0;
    }),
  );
  const last = rows.length === limit ? rows.at(-1) : undefined;
  const next = last ? place : sealedPlaces[sealedPlaces.indexOf(place) + 1];
  return {
    examined: rows.length,
    resealed: written.reduce((sum, count) => sum + count, 0),
    overtaken: written.filter((count) => count === 0).length,
    unreadable: results.filter(({ isReadable }) => !isReadable).map(({ row }) => `${place}:${row.key}`),
    nextCursor: next === undefined ? null : `${next}/${last?.key ?? ""}`,
  };
}

function positionOf(cursor: string): [SealedPlace, string] {
  const slash = cursor.indexOf("/");
  const place = sealedPlaces.find((one) => one === cursor.slice(0, slash));
  if (!place) throw invalid("cursor", "not a nextCursor of this operation");
  return [place, cursor.slice(slash + 1)];
}

function resealed(ctx: Ctx, place: SealedPlace, row: SealedRow) {
  let count = 0;
  let isReadable = true;
  const again = (sealed: string, at: SealedFor): string => {
    if (ctx.secrets.isCurrent(sealed)) return sealed;
    const plain = opened(ctx, sealed, at);
    if (plain === undefined) {
      isReadable = false;
      return sealed;
    }
    count++;
    return ctx.secrets.seal(plain, at);
  };
  return { text: places[place].replace(row, again), count, isReadable };
}

function opened(ctx: Ctx, sealed: string, at: SealedFor): string | undefined {
  try {
    return ctx.secrets.open(sealed, at);
  } catch {
    return undefined;
  }
}
