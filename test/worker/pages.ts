import type { OwnAccount } from "../../protocol/api/accounts.ts";
import { api, call, newSession, operatorCookie, siteUrl } from "./service.ts";

type Page = { status: number; location: string; text: string };

/** Pages as the operator's browser gets them without a script. */
export async function pagesOfOperator() {
  const cookie = await operatorCookie();
  const take = async (response: Response): Promise<Page> => ({
    status: response.status,
    location: response.headers.get("Location") ?? "",
    text: new TextDecoder().decode(await response.arrayBuffer()),
  });
  return {
    show: async (path: string) =>
      take(await call(path, { redirect: "manual", headers: { Cookie: cookie, Accept: "text/html" } })),
    /** Sends the form with this id of the page. */
    send: async (path: string, form: string, fields: Record<string, string> = {}) =>
      take(
        await call(path, {
          method: "POST",
          redirect: "manual",
          headers: { Origin: siteUrl, Cookie: cookie, Accept: "text/html" },
          body: new URLSearchParams({ form, ...fields }),
        }),
      ),
  };
}

/** The fields of a page's form as a browser would send them untouched. */
export function fieldsOf(text: string, form: string): Record<string, string> {
  const [, inside = ""] = new RegExp(`<form[^>]*id="form-${form}"[^>]*>([^]*?)</form>`).exec(text) ?? [];
  const attribute = (tag: string, name: string) =>
    new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1]?.replaceAll("&quot;", '"').replaceAll("&amp;", "&");
  const fields: Record<string, string> = {};
  for (const [tag] of inside.matchAll(/<input[^>]*>/g)) {
    const [name, type] = [attribute(tag, "name"), attribute(tag, "type")];
    if (name === undefined || name === "form") continue;
    if ((type === "checkbox" || type === "radio") && !/\bchecked\b/.test(tag)) continue;
    fields[name] = attribute(tag, "value") ?? "";
  }
  for (const [, tag = "", value = ""] of inside.matchAll(/<textarea([^>]*)>([^]*?)<\/textarea>/g))
    fields[attribute(tag, "name") ?? ""] = value.replaceAll(/\r\n?/g, "\n").replace(/^\n/, "");
  for (const [, tag = "", options = ""] of inside.matchAll(/<select([^>]*)>([^]*?)<\/select>/g))
    fields[attribute(tag, "name") ?? ""] =
      attribute(/<option[^>]*\bselected\b[^>]*>/.exec(options)?.[0] ?? "", "value") ?? "";
  return fields;
}

type Visited = { status: number; headers: Headers; location: string | null; text: string };
/** A browser without a script: it has a cookie, and keeps what a form says for the next page. */
export type Visitor = {
  get(path: string): Promise<Visited>;
  /** Sends the form of this id; `said`: what the page that it leads to says of it. */
  send(path: string, form: string, fields?: Record<string, string>): Promise<Visited & { said: string }>;
};

export function visitorWith(cookie: string): Visitor {
  let flash = "";
  const request = async (path: string, init: RequestInit): Promise<Visited> => {
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

/** A new session of the key's account. */
export async function signedIn(key: string, userAgent = "Firefox") {
  const { id: accountId } = (await api<OwnAccount>(key, "GET", "/account")).body;
  const { id, cookie } = await newSession(accountId, { user_agent: userAgent });
  return { id, cookie, visitor: visitorWith(cookie) };
}

/** Text as pages show it. */
export const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
