/**
 * A path of this service with its query, such as signing in or a form leads on to; "/" for everything else, above all for what
 * browsers take for another site's address (two slashes, or backslashes).
 */
export function ownPath(text: string): string {
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(text)) return "/";
  const here = "https://here.invalid";
  const url = URL.parse(text, here);
  return url?.origin === here && !url.pathname.startsWith("//") ? url.pathname + url.search : "/";
}
