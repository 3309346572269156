import type { Found } from "../../protocol/api/search.ts";

/**
 * Jumps to what a few letters name: pages of this service at once, sites, databases, deployments and invoices from GET /search.
 * Loaded at the first use of ⌘K or of the search field.
 */

/** It leads somewhere, or does something on this page. */
type Entry = { title: string; detail: string; href?: string; act?: () => void };

const pages: Entry[] = [
  ["Home", "/"],
  ["Sites", "/sites"],
  ["New site", "/sites/new"],
  ["Databases", "/databases"],
  ["New database", "/databases/new"],
  ["Activity", "/activity"],
  ["Billing", "/billing"],
  ["Settings", "/account"],
  ["API keys", "/account/keys"],
  ["Assistant", "/assistant"],
  ["API reference", "/docs"],
].map(([title = "", href = ""]) => ({ title, href, detail: "Page" }));

const siteTabs = [
  "deployments",
  "logs",
  "metrics",
  "requests",
  "variables",
  "domains",
  "data",
  "jobs",
  "settings",
];

/** The page of what was found. */
function addressOf({ type, id, siteId }: Found): string {
  switch (type) {
    case "site":
      return `/sites/${id}`;
    case "database":
      return `/databases/${id}`;
    case "domain":
      return `/sites/${siteId ?? ""}/domains`;
    case "deployment":
      return `/deployments/${id}`;
    case "invoice":
      return "/billing";
    case "account":
      return `/operator/accounts/${id}`;
    case "host":
      return "/operator/hosts";
  }
}

/** What can be done with the site that is open, and its tabs. */
function here(): Entry[] {
  const site = /^\/sites\/(site_[0-9a-z]+)/.exec(location.pathname)?.[1];
  if (site === undefined) return [];
  const detail = "This site";
  const presses = ["deploy", "rebuild", "restart", "start", "stop"].flatMap((id) => {
    const button = document.querySelector<HTMLButtonElement>(`#site-head #form-${id} button`);
    return button ? [{ title: button.textContent, detail, act: () => button.click() }] : [];
  });
  const copy = document.querySelector<HTMLButtonElement>("#site-head [data-copy]");
  return [
    ...presses,
    ...(copy ? [{ title: "Copy the address", detail, act: () => copy.click() }] : []),
    { title: "Add a variable", detail, href: `/sites/${site}/variables#form-set` },
    { title: "Add a domain", detail, href: `/sites/${site}/domains#form-add` },
    ...siteTabs.map((tab) => ({
      title: tab.replace(/^./, (letter) => letter.toUpperCase()),
      detail,
      href: `/sites/${site}/${tab}`,
    })),
  ];
}

const dialog = document.createElement("dialog");
dialog.className = "palette";
dialog.setAttribute("aria-label", "Search or jump to");
const field = document.createElement("input");
field.type = "search";
field.autocapitalize = "none";
field.spellcheck = false;
field.placeholder = "A site, database, domain, commit, invoice or page";
field.setAttribute("role", "combobox");
field.setAttribute("aria-expanded", "true");
field.setAttribute("aria-controls", "palette-list");
field.setAttribute("aria-label", "Search or jump to");
const list = document.createElement("ul");
list.id = "palette-list";
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Found");
const status = document.createElement("p");
status.className = "hidden-text";
status.setAttribute("role", "status");
dialog.append(field, list, status);
document.body.append(dialog);

let shown: Entry[] = [];
let at = 0;
let asked = 0;

function show(entries: Entry[]): void {
  shown = entries;
  at = 0;
  list.replaceChildren(
    ...entries.map(({ title, detail, href = "#" }, index) => {
      const item = document.createElement("li");
      item.id = `palette-${index}`;
      item.setAttribute("role", "option");
      const link = document.createElement("a");
      link.href = href;
      link.tabIndex = -1;
      const name = document.createElement("b");
      name.textContent = title;
      const more = document.createElement("span");
      more.className = "soft small";
      more.textContent = detail;
      link.append(name, more);
      item.append(link);
      return item;
    }),
  );
  status.textContent = entries.length === 0 ? "Nothing found." : `${entries.length} found.`;
  mark();
}

function mark(): void {
  for (const [index, item] of [...list.children].entries()) {
    item.setAttribute("aria-selected", String(index === at));
    if (index === at) item.scrollIntoView({ block: "nearest" });
  }
  if (shown.length > 0) field.setAttribute("aria-activedescendant", `palette-${at}`);
  else field.removeAttribute("aria-activedescendant");
}

async function search(): Promise<void> {
  const text = field.value.trim();
  const turn = ++asked;
  const known = [...here(), ...pages].filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()));
  show(known.slice(0, 12));
  if (text === "") return;
  const answer = await fetch(`/api/v1/search?q=${encodeURIComponent(text.slice(0, 100))}`).catch(() => null);
  if (turn !== asked || !answer?.ok) return;
  const { data } = (await answer.json()) as { data: Found[] };
  if (turn !== asked) return;
  const found = data.map((one) => ({
    title: one.title,
    detail: [one.type, one.detail].filter(Boolean).join(" · "),
    href: addressOf(one),
  }));
  const docs = {
    title: `Search the documentation for “${text}”`,
    detail: "Docs",
    href: `/docs?q=${encodeURIComponent(text)}`,
  };
  show([...found, ...known].slice(0, 20).concat(docs));
}

function take({ href, act }: Entry): void {
  dialog.close();
  if (act) act();
  else if (href !== undefined) location.assign(href);
}
list.addEventListener("click", (event) => {
  const item = (event.target as Element).closest("li");
  const entry = shown[[...list.children].findIndex((one) => one === item)];
  if (!entry?.act) return;
  event.preventDefault();
  take(entry);
});

let timer: ReturnType<typeof setTimeout> | undefined;
field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => void search(), 120);
});
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    at = (at + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % Math.max(1, shown.length);
    mark();
  }
  const chosen = shown[at];
  if (event.key === "Enter" && chosen) {
    event.preventDefault();
    take(chosen);
  }
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

export function openPalette(): void {
  if (dialog.open) return;
  field.value = "";
  void search();
  dialog.showModal();
}

const shortcuts = [
  ["⌘K or Ctrl K", "Search, jump to, or do something"],
  ["g then h, s, d, a, b, k", "Go to Home, Sites, Databases, Activity, Billing, API keys"],
  ["d", "Go to a site's Deploy button; Enter deploys"],
  ["/ f p w g G", "In a log: search, follow, pause, wrap, first line, last line"],
  ["?", "This list"],
] as const;

/** What the keyboard does, and a box to switch its single keys off (WCAG 2.1.4). */
export function openShortcuts(): void {
  const help = document.createElement("dialog");
  help.className = "palette";
  help.setAttribute("aria-label", "Keyboard shortcuts");
  const title = document.createElement("h2");
  title.textContent = "Keyboard shortcuts";
  const keys = document.createElement("dl");
  for (const [key, text] of shortcuts) {
    const [term, said] = [document.createElement("dt"), document.createElement("dd")];
    const kbd = document.createElement("kbd");
    kbd.textContent = key;
    term.append(kbd);
    said.textContent = text;
    keys.append(term, said);
  }
  const label = document.createElement("label");
  label.className = "check";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = localStorage.getItem("shortcuts") !== "off";
  box.addEventListener("change", () => localStorage.setItem("shortcuts", box.checked ? "on" : "off"));
  label.append(box, "Single keys");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => help.close());
  help.addEventListener("close", () => help.remove());
  help.append(title, keys, label, close);
  document.body.append(help);
  help.showModal();
}
