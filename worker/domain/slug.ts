/** The first label of a site's own address: its name, cut, and eight random characters; a DNS label of at most 63. */
export function siteSlug(name: string, random: Uint8Array): string {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  const suffix = Array.from(random.subarray(0, 8), (byte) => digits.charAt(byte & 31)).join("");
  return `${name.slice(0, 54).replace(/-+$/, "")}-${suffix}`;
}

/** `https://sites.example` → `https://<slug>.sites.example`; the port stays. */
export function siteAddress(sitesOrigin: string, slug: string): { url: string; hostname: string } {
  const origin = new URL(sitesOrigin);
  const hostname = `${slug}.${origin.hostname}`;
  return { url: `${origin.protocol}//${hostname}${origin.port ? `:${origin.port}` : ""}`, hostname };
}
