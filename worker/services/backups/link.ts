import type { ById } from "../../../protocol/api/common.ts";
import { timingSafeEqual } from "node:crypto";
import type { BackupLink } from "../../../protocol/api/backups.ts";
import { credentialOf, type Credential, type Ctx } from "../../ctx.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { linkLifeMs } from "../../domain/backup-rules.ts";
import { deriveKey } from "../../domain/tokens.ts";
import { hmacSha256 } from "../../domain/ciphers.ts";
import { findWorking } from "../accounts/find-working.ts";
import { backupOwnedBy } from "./owned.ts";

/** The parameters of the URL. */
export type SignedLink = { expires: string; by: string; signature: string };

const signatureOf = (ctx: Ctx, id: string, { expires, by }: Omit<SignedLink, "signature">): string =>
  Buffer.from(
    hmacSha256(deriveKey(ctx.config.SECRET_KEY, "backup-link"), Buffer.from(`${id}:${expires}:${by}`)),
  ).toString("base64url");

/**
 * A URL for this backup alone, also if its verification failed, because it may be the last copy of its data; valid for
 * ten minutes and only while the key or session that requested it is valid.
 */
export async function linkBackup(ctx: Ctx, { id: backupId }: ById): Promise<BackupLink> {
  const { id, status, sha256 } = await backupOwnedBy(ctx, backupId);
  if (status === "RUNNING")
    throw conflict("This backup is still in progress. It can be downloaded when it is complete.");
  if (status === "FAILED" && sha256 === null)
    throw conflict("This backup failed and has no file to download. Create another one.");
  const expiresAt = new Date(ctx.now().getTime() + linkLifeMs);
  const expires = String(expiresAt.getTime());
  const url = new URL(`/backups/${id}/download`, ctx.config.SITE_URL);
  const signed = { expires, by: credentialOf(ctx) };
  url.search = new URLSearchParams({ ...signed, signature: signatureOf(ctx, id, signed) }).toString();
  return { url: url.href, expiresAt: expiresAt.toISOString() };
}

/** @throws AppError not_found for forged and expired URLs, and if the requesting key or session has ended */
export async function requireSigned(ctx: Ctx, id: string, link: SignedLink): Promise<void> {
  const expected = Buffer.from(signatureOf(ctx, id, link));
  const given = Buffer.from(link.signature);
  const isOurs = expected.length === given.length && timingSafeEqual(expected, given);
  if (!isOurs || Number(link.expires) <= ctx.now().getTime()) throw new AppError("not_found");
  const working = await findWorking(ctx, [{ credential: link.by as Credential }]);
  if (working.size === 0) throw new AppError("not_found");
}
