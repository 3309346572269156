import type { Domain, DomainCertificate } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { renewAt } from "../../domain/certificates.ts";
import { lookAt } from "./look.ts";
import { domainOwnedBy, type OfDomain } from "./owned.ts";
import { domainView } from "./view.ts";

/**
 * Asks the host to obtain the certificate, or to renew it, now. A certificate that is not due yet is kept: certificate
 * authorities limit how many they issue for a name. @throws AppError conflict
 */
export async function renewDomain(ctx: Ctx, input: OfDomain): Promise<Domain> {
  const { site, row } = await domainOwnedBy(ctx, input);
  if (!row.verifiedAt) throw conflict("The domain is not verified. Verify it first.");
  const seen = await lookAt(ctx, site, { ...row, looks: 0 });
  if (!seen) throw new AppError("not_found");
  const isKept = seen.state === "ACTIVE" && seen.certificate?.notAfter === row.certificate?.notAfter;
  const dueAt = isKept ? dueOf(seen.certificate) : null;
  if (dueAt && ctx.now() < dueAt)
    throw conflict(
      `The certificate of ${seen.name} is valid until ${day(seen.certificate?.notAfter)}. It is renewed automatically from ${day(dueAt.toISOString())}, and cannot be renewed earlier.`,
    );
  return domainView(ctx, site, seen);
}

const day = (iso: string | null | undefined): string => (iso ?? "").slice(0, 10);

const dueOf = (certificate: DomainCertificate | null): Date | null =>
  certificate?.notBefore && certificate.notAfter
    ? renewAt({ notBefore: new Date(certificate.notBefore), notAfter: new Date(certificate.notAfter) })
    : null;
