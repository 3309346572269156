/** What an error page says (worker/pages/error.tsx): its heading and its text; empty if it is none. */
export function errorOn(page: Document): string {
  const [heading, ...texts] = [...page.querySelectorAll("#main > .sheet :is(h1, p:not(.buttons))")].map(
    ({ textContent }) => textContent.trim(),
  );
  return heading === undefined ? "" : [`${heading}.`, ...texts].join(" ");
}
