/** The steps of issuing a certificate, in their order. */
export const certificateSteps = [
  /** Ordered: the TXT record is being published. */
  "PUBLISH",
  /** The authority looks for the record. */
  "VALIDATE",
  /** The authority issues the certificate for the stored key. */
  "FINALIZE",
] as const;

type Period = { notBefore: Date; notAfter: Date };

/** Two thirds of the lifetime have passed. */
export const renewAt = ({ notBefore, notAfter }: Period): Date =>
  new Date(notBefore.getTime() + ((notAfter.getTime() - notBefore.getTime()) * 2) / 3);

/** Half of the time for its renewal has passed: its owner is told, 15 days before the end of a certificate of 90 days. */
export const renewalLateAt = ({ notBefore, notAfter }: Period): Date =>
  new Date(notAfter.getTime() - (notAfter.getTime() - notBefore.getTime()) / 6);

/** Authorities allow few failures an hour: five minutes, then twice as long each time, up to six hours. */
export const certificateRetryMs = (failures: number): number =>
  Math.min(6 * 60, 5 * 2 ** Math.max(0, failures - 1)) * 60_000;

/** Resolvers that do not show a published record by then may have cached its absence; the authority asks for itself. */
export const publishedWithinMs = 2 * 60_000;

/** An order that has not succeeded by then is replaced. */
export const orderWithinMs = 6 * 60 * 60_000;

const weekMs = 7 * 24 * 60 * 60_000;

/**
 * For how many new sites a host obtains certificates of their own while the first wildcard certificate is on its way: for twenty a week on
 * all hosts. Let's Encrypt issues fifty a week below one domain, and the wildcard's must remain among them.
 */
export const ownCertificates = (waitedMs: number, hostCount: number): number =>
  Math.max(1, Math.floor(20 / hostCount)) * (1 + Math.floor(waitedMs / weekMs));

/** Where the authority looks for the proof of a wildcard (RFC 8555, section 8.4). */
export const challengeName = (name: string): string => `_acme-challenge.${name.replace(/^\*\./, "")}`;

/** A name in the zone of the sites to which the owner of a custom domain delegates such proofs, by CNAME. */
export const delegationName = (key: string, sitesDomain: string): string =>
  `${key}._acme-challenge.${sitesDomain}`;
