import type { IngressRules, Redirect } from "../../protocol/api/ingress.ts";

const samples = ({ from, match }: Redirect) =>
  match === "prefix" ? [from, `${from.replace(/\/$/, "")}/a/b`] : [from];

/**
 * The index of a redirect that leads back to itself, or ever further, by way of the others; null: none does.
 * @param hostnames the site's own: an address of one of them is a path of the site
 */
export function circularRedirect(
  redirects: NonNullable<IngressRules["redirects"]>,
  hostnames: readonly string[],
): number | null {
  const circular = redirects.findIndex((redirect) =>
    samples(redirect).some((path) => {
      let at: string | null = path;
      for (let step = 0; at !== null && step <= redirects.length; step++) at = next(redirects, hostnames, at);
      return at !== null;
    }),
  );
  return circular < 0 ? null : circular;
}

/** The path of the site that a visitor of this one is sent to; null: none. */
function next(redirects: readonly Redirect[], hostnames: readonly string[], path: string): string | null {
  const redirect = redirects.find((one) => restOf(one, path) !== null);
  if (!redirect) return null;
  const rest = restOf(redirect, path) ?? "";
  const target = redirect.to.startsWith("/")
    ? new URL(redirect.to, "http://own.invalid")
    : new URL(redirect.to);
  if (target.hostname !== "own.invalid" && !hostnames.includes(target.hostname)) return null;
  return rest === "" ? target.pathname : `${target.pathname.replace(/\/$/, "")}${rest}`;
}

function restOf({ from, match }: Pick<Redirect, "from" | "match">, path: string): string | null {
  if (path === from) return "";
  const folder = from.replace(/\/$/, "");
  return match === "prefix" && path.startsWith(`${folder}/`) ? path.slice(folder.length) : null;
}
