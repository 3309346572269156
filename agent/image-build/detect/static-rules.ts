import { firstOf, textOf, type Sources } from "./sources.ts";

/** What `_redirects` and `_headers` say, as Netlify and Cloudflare Pages read them, and Staticfile as Cloud Foundry does. */
export type Redirect = {
  /** An expression for the path; what it captures is `{1}`, `{2}` … in the target. */
  path: string;
  to: string;
  status: number;
  /** Goes before a file of that path. */
  isForced: boolean;
};
export type HeaderRule = {
  path: string;
  /** null: the header is removed. */
  headers: [name: string, value: string | null][];
};
export type StaticRules = {
  redirects: Redirect[];
  headers: HeaderRule[];
  /** For the log: what is not read. */
  notes: string[];
};

/** The configuration is part of one command, which has 128 KB. */
const mostCharacters = 50_000;
/** Of what is written around each. */
const aroundRedirect = 300;
const aroundHeader = 60;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
const pathCharacters = String.raw`[\w./~%!$&()*+,;=:@#?-]`;
const target = new RegExp(`^(?:https?://[\\w.:-]{1,255})?(?:/${pathCharacters}{0,1000})?$`);
const from = new RegExp(`^/${pathCharacters}{0,500}$`);

/** The files that are published with the site: at the root of files as they are, or where a framework copies them from. */
export function readStaticRules(sources: Sources, folders: readonly string[]): StaticRules {
  const textNamed = (name: string): string =>
    folders.map((folder) => textOf(sources, `${folder}${name}`)).find((text) => text !== "") ?? "";
  const redirects = readRedirects(textNamed("_redirects"));
  const headers = readHeaders(textNamed("_headers"));
  return {
    redirects: redirects.rules,
    headers: headers.rules,
    notes: [
      ...notesOfServers(sources),
      ...notRead("_redirects", redirects.unread),
      ...notRead("_headers", headers.unread),
    ],
  };
}

const notRead = (file: string, lines: string[]): string[] =>
  lines.length === 0
    ? []
    : [
        `${file} has ${lines.length === 1 ? "a line that is" : "lines that are"} not read: ${firstOf(lines, 3, "; ")}.`,
      ];

/** `/old/* /new/:splat 301!`: without a status 301, and 404 and 200 answer with a file. */
function readRedirects(text: string): { rules: Redirect[]; unread: string[] } {
  const rules: Redirect[] = [];
  const unread: string[] = [];
  let characters = 0;
  for (const line of text.split("\n")) {
    const words = line.split(/\s+/).filter((word) => word !== "");
    // Within a word it is a fragment.
    const comment = words.findIndex((word) => word.startsWith("#"));
    const [path, to = "", status = "301", ...conditions] = words.slice(
      0,
      comment === -1 ? undefined : comment,
    );
    if (path === undefined) continue;
    const rule = conditions.length === 0 ? redirectOf(path, to, status) : null;
    characters += rule === null ? 0 : rule.path.length + rule.to.length + aroundRedirect;
    if (rule === null || characters > mostCharacters) unread.push(line.trim());
    else rules.push(rule);
  }
  return { rules, unread };
}

function redirectOf(path: string, to: string, status: string): Redirect | null {
  const code = Number(/^(\d{3})!?$/.exec(status)?.[1]);
  const isOwn = to.startsWith("/");
  if (!target.test(to) || !from.test(path) || to === "") return null;
  if (!redirectStatuses.has(code) && !((code === 200 || code === 404) && isOwn)) return null;
  const pattern = patternOf(path);
  if (pattern === null) return null;
  let known = true;
  const replaced = to.replace(/:([A-Za-z]\w{0,30})/g, (_, name: string) => {
    const at = pattern.names.indexOf(name);
    known &&= at !== -1;
    return `{${at + 1}}`;
  });
  return known ? { path: pattern.path, to: replaced, status: code, isForced: status.endsWith("!") } : null;
}

/** `:name` is one part of a path, and a `*` at its end is the rest. */
function patternOf(path: string): { path: string; names: string[] } | null {
  const names: string[] = [];
  const splat = path.endsWith("*");
  const parts = (splat ? path.replace(/\/?\*$/, "") : path).split("/").map((part) => {
    const name = /^:([A-Za-z]\w{0,30})$/.exec(part)?.[1];
    if (name === undefined) return part.replaceAll(/[^\w~%@!&,;=:-]/g, (one) => `[${one}]`);
    names.push(name);
    return "([^/]+)";
  });
  if (/[*?#]/.test(splat ? path.slice(0, -1) : path)) return null;
  if (splat) names.push("splat");
  const written = parts.join("/");
  return { path: `^${written.replace(/\/$/, "")}${splat ? "(?:/(.*))?" : "/?"}$`, names };
}

/** A path, and below it, farther in, the headers of what is there. */
function readHeaders(text: string): { rules: HeaderRule[]; unread: string[] } {
  const rules: HeaderRule[] = [];
  const unread: string[] = [];
  let current: HeaderRule | null = null;
  let characters = 0;
  for (const line of text.split("\n").map((one) => one.trimEnd())) {
    const said = line.trimStart();
    if (said === "" || said.startsWith("#")) continue;
    const header = current && said !== line ? headerOf(said) : null;
    const pattern = said === line && from.test(said) ? patternOf(said) : null;
    if (header !== null || pattern !== null) characters += 2 * said.length + aroundHeader;
    if (header !== null && characters < mostCharacters) current?.headers.push(header);
    else if (pattern !== null && characters < mostCharacters)
      rules.push((current = { path: pattern.path, headers: [] }));
    else {
      unread.push(said);
      if (said === line) current = null;
    }
  }
  return { rules: rules.filter(({ headers }) => headers.length > 0), unread };
}

function headerOf(said: string): HeaderRule["headers"][number] | null {
  const removed = /^! *([A-Za-z][\w-]{0,100})$/.exec(said)?.[1];
  if (removed !== undefined) return [removed, null];
  const [, name, value = ""] = /^([A-Za-z][\w-]{0,100}):[ \t]*([\x20-\x7e]{1,2000})$/.exec(said) ?? [];
  return name === undefined || /[{}\\]|:splat\b/.test(value) ? null : [name, value];
}

type Staticfile = { root: string | null; singlePage: boolean | null };

export function readStaticfile(sources: Sources): Staticfile {
  const text = textOf(sources, "Staticfile");
  const root = /^root:[ \t]*["']?(?:\.\/)?([\w.@+/-]{1,300})/m.exec(text)?.[1]?.replace(/\/+$/, "");
  const pushed = /^(?:pushstate|index_fallback):[ \t]*["']?(enabled|true|disabled|false)\b/m.exec(text)?.[1];
  return {
    root:
      root === undefined ||
      root === "." ||
      root === "" ||
      root.split("/").includes("..") ||
      root.startsWith("/")
        ? null
        : root,
    singlePage: pushed === undefined ? null : pushed === "enabled" || pushed === "true",
  };
}

/** How other servers are told what to do. */
function notesOfServers({ files }: Sources): string[] {
  const found = ["Caddyfile", "nginx.conf", ".htaccess"].filter((name) => files.has(name)).join(" and ");
  return found === ""
    ? []
    : [`Not read: ${found}. The redirects and headers of a static site are set in _redirects and _headers.`];
}
