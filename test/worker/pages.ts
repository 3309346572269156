import { call, siteUrl } from "./service.ts";

type Page = { status: number; headers: Headers; location: string | null; text: string };
/** A browser without a script: it has a cookie, and keeps what a form says for the next page. */
export type Visitor = {
  get(path: string): Promise<Page>;
  /** Sends the form of this id; `said`: what the page that it leads to says of it. */
  send(path: string, form: string, fields?: Record<string, string>): Promise<Page & { said: string }>;
};

export function visitorWith(cookie: string): Visitor {
  let flash = "";
  const request = async (path: string, init: RequestInit): Promise<Page> => {
    const response = await call(path, {
      ...init,
      redirect: "manual",
      headers: {
        Origin: siteUrl,
        Accept: "text/html",
        Cookie: [cookie, flash].filter(Boolean).join("; "),
      },
    });
    for (const set of response.headers.getSetCookie())
      if (set.startsWith("berth_said=")) flash = /Max-Age=0/i.test(set) ? "" : (set.split(";")[0] ?? "");
    const { status, headers } = response;
    return { status, headers, location: headers.get("Location"), text: await response.text() };
  };
  const get = (path: string) => request(path, {});
  return {
    get,
    async send(path, form, fields = {}) {
      const page = await request(path, { method: "POST", body: new URLSearchParams({ form, ...fields }) });
      const shown = flash === "" || page.location === null ? page : await get(page.location);
      const [, said = ""] = /data-flash[^>]*>(?:<p>)?([^<]+)/.exec(shown.text) ?? [];
      return { ...page, said };
    },
  };
}

/** Text as pages show it. */
export const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
