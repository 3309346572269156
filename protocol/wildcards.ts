/** A wildcard stands for names with one label in its place (RFC 9525, section 6.3). */
export const isWildcard = (name: string): boolean => name.startsWith("*.");

/** The wildcard that covers the name: `shop.example.com` → `*.example.com`. */
export const wildcardOf = (hostname: string): string => hostname.replace(/^[^.]+/, "*");

/** The name itself, or one that stands for all names of a wildcard where it is looked up. */
export const exampleOf = (name: string): string => (isWildcard(name) ? `berth-check${name.slice(1)}` : name);
