import { domainToUnicode } from "node:url";
import { parse } from "tldts";
import { isWildcard } from "../../protocol/wildcards.ts";

/** `*.example.com` → `example.com`. */
export const withoutWildcard = (name: string): string => (isWildcard(name) ? name.slice(2) : name);

/** The name as people read it, in Unicode. */
export function displayName(name: string): string {
  const readable = domainToUnicode(withoutWildcard(name)) || withoutWildcard(name);
  return isWildcard(name) ? `*.${readable}` : readable;
}

/** The registrable domain itself, such as example.co.uk: a zone's root, which cannot be a CNAME (RFC 1034, 3.6.2). */
export const isApex = (name: string): boolean => parse(name, psl).domain === name;

/** Private suffixes, such as github.io, have other owners below them too. */
const psl = { allowPrivateDomains: true };

/** The registrable domain of a name or a wildcard, under which its records are entered; null: it has none. */
export const zoneOf = (name: string): string | null => parse(withoutWildcard(name), psl).domain;

/** Under this name, or the name itself, anybody can register names: nobody owns it alone. */
export const isPublicSuffix = (name: string): boolean => {
  const bare = withoutWildcard(name);
  const { publicSuffix, isIcann, isPrivate } = parse(bare, psl);
  return publicSuffix === bare && (isIcann === true || isPrivate === true);
};

/** The other of the pair example.com and www.example.com; null: the name has none. */
export function pairOf(name: string): string | null {
  if (isApex(name)) return `www.${name}`;
  return name.startsWith("www.") ? name.slice(4) : null;
}

/** Whether a name, or a wildcard's names, are `own` or below it. */
export function isBelow(name: string, own: string): boolean {
  const bare = withoutWildcard(name);
  if (bare === own || bare.endsWith(`.${own}`)) return true;
  return isWildcard(name) && own.endsWith(`.${bare}`);
}
