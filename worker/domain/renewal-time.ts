/** Hosts renew a certificate when a third of its life is left. */
export const renewalTime = (notBefore: Date, notAfter: Date): Date =>
  new Date(notAfter.getTime() - (notAfter.getTime() - notBefore.getTime()) / 3);
