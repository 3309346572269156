import { call, operatorCookie, siteUrl } from "./service.ts";

export type Page = { status: number; location: string; text: string };

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
    fields[attribute(tag, "name") ?? ""] = value;
  for (const [, tag = "", options = ""] of inside.matchAll(/<select([^>]*)>([^]*?)<\/select>/g))
    fields[attribute(tag, "name") ?? ""] =
      attribute(/<option[^>]*\bselected\b[^>]*>/.exec(options)?.[0] ?? "", "value") ?? "";
  return fields;
}
