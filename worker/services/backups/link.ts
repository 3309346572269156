import { timingSafeEqual } from "node:crypto";
import type { BackupLink } from "../../../protocol/api/backups.ts";
import type { Ctx } from "../../context.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { linkLifeMs } from "../../domain/backup-rules.ts";
import { deriveKey } from "../../domain/tokens.ts";
import { hmacSha256 } from "../../domain/ciphers.ts";
import { backupOwnedBy } from "./owned.ts";

const signatureOf = (ctx: Ctx, id: string, expires: string): string =>
  Buffer.from(
    hmacSha256(deriveKey(ctx.config.SECRET_KEY, "backup-link"), Buffer.from(`${id}:${expires}`)),
  ).toString("base64url");

/** An address that opens this backup, and nothing else, for ten minutes. */
export async function linkBackup(ctx: Ctx, backupId: string): Promise<BackupLink> {
  const { id, status } = await backupOwnedBy(ctx, backupId);
  if (status !== "VERIFIED" && status !== "STORED")
    throw conflict(`A ${status} backup cannot be downloaded: only one that is complete.`);
  const expiresAt = new Date(ctx.now().getTime() + linkLifeMs);
  const expires = String(expiresAt.getTime());
  const url = new URL(`/backups/${id}/download`, ctx.config.SITE_URL);
  url.search = new URLSearchParams({ expires, signature: signatureOf(ctx, id, expires) }).toString();
  return { url: url.href, expiresAt: expiresAt.toISOString() };
}

/** @throws AppError not_found: forged and outdated addresses lead nowhere */
export function requireSigned(ctx: Ctx, id: string, link: { expires: string; signature: string }): void {
  const expected = Buffer.from(signatureOf(ctx, id, link.expires));
  const given = Buffer.from(link.signature);
  const isOurs = expected.length === given.length && timingSafeEqual(expected, given);
  if (!isOurs || Number(link.expires) <= ctx.now().getTime()) throw new AppError("not_found");
}
