const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/** A host, with or without a port, that may be looked up. */
export const hostPattern = `^(?:${label}\\.)*${label}(?::[0-9]+)?$`;
/** One with a dot at its end: the host without it, and the port. */
export const dottedHostPattern = `^((?:${label}\\.)*${label})\\.(:[0-9]+)?$`;
/** So that a label and `.dup.internal` fit around it in a DNS name. */
export const maxHostLength = 220;
export const notHostNameText = "Not a host name\n";

const pattern = new RegExp(hostPattern);
export const isHostName = (hostname: string): boolean =>
  hostname.length <= maxHostLength && pattern.test(hostname);
