/** On every page: forms that replace only what changed, live parts, times and copying. Each page works without it. */

import { ago } from "../protocol/ago.ts";
import { localTime } from "../protocol/days.ts";
import { duration } from "../protocol/duration.ts";
import { errorOn } from "./lib/error-page.ts";
import { waitMs } from "./lib/refused.ts";

const policy =
  "trustedTypes" in globalThis
    ? (
        globalThis as unknown as {
          trustedTypes: { createPolicy(name: string, rules: object): { createHTML(text: string): string } };
        }
      ).trustedTypes.createPolicy("berth", { createHTML: (text: string) => text })
    : { createHTML: (text: string) => text };

/** A parser without scripts makes elements of what is for readers without them, and a document with scripts would obey those. */
function withoutPlain(page: Document): Document {
  for (const part of page.querySelectorAll("noscript")) part.remove();
  return page;
}
withoutPlain(document);

/** Only for pages of this origin, which the server has escaped. */
const parse = (page: string): Document =>
  withoutPlain(new DOMParser().parseFromString(policy.createHTML(page), "text/html"));

const main = () => document.querySelector<HTMLElement>("#main");
const isSignIn = (url: string): boolean => new URL(url).pathname === "/sign-in";

// Forms

document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  if (!form.matches("[data-enhanced]") || event.defaultPrevented) return;
  event.preventDefault();
  if (!losesOthers(form) || confirm("Other changes on this page are not saved and will be lost. Continue?"))
    void send(form, event.submitter);
});

/** What the browser filled in was not typed, and what is in a closed menu was given up. */
function isTyped(field: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement): boolean {
  if (field.matches(":autofill, details.menu:not([open]) *")) return false;
  if (field instanceof HTMLSelectElement)
    return field.selectedOptions[0] !== (field.querySelector("option[selected]") ?? field.options[0]);
  if (field instanceof HTMLInputElement && ["checkbox", "radio"].includes(field.type))
    return field.checked !== field.defaultChecked;
  return field.value !== field.defaultValue;
}
const hasTyped = (part: Element): boolean =>
  [...part.querySelectorAll<HTMLInputElement>("input, select, textarea")].some(isTyped);

/** Its answer takes the place of what other forms have, and of what an island warns of. */
const losesOthers = (sent: HTMLFormElement | null): boolean =>
  !dispatchEvent(new Event("beforeunload", { cancelable: true })) ||
  [...document.querySelectorAll("#main form[data-enhanced]")].some((form) => form !== sent && hasTyped(form));

/** Neither what a form led to nor why it was refused: such a page has nothing of what was typed. */
const isError = ({ ok, status, redirected }: Response): boolean =>
  !ok && !redirected && status !== 400 && status !== 409;

/** No browser says that a script waits for an answer. */
const waiting = "Waiting for the service …";

/** A request that only asks is given up for the next one of its form. */
let asking: { form: HTMLFormElement; request: AbortController } | undefined;

async function send(form: HTMLFormElement, submitter: HTMLElement | null): Promise<void> {
  if (asking?.form === form) asking.request.abort();
  else if (form.getAttribute("aria-busy") === "true") return;
  const request = new AbortController();
  asking = submitter?.hasAttribute("data-asks") === true ? { form, request } : undefined;
  form.setAttribute("aria-busy", "true");
  submitter?.setAttribute("aria-busy", "true");
  const late = setTimeout(() => (announced.textContent = waiting), 1000);
  try {
    const fields = new FormData(form, submitter);
    const body = new URLSearchParams(
      [...fields].map(([name, value]) => [name, typeof value === "string" ? value : value.name]),
    );
    const to = submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;
    const answer = await fetch(to, {
      method: "POST",
      body,
      headers: { Accept: "text/html" },
      signal: request.signal,
    });
    if (answer.redirected && isSignIn(answer.url)) {
      tell("You are signed out. Sign in in another tab, then send this form again: nothing is lost. ").append(
        signInLink(answer.url),
      );
      return;
    }
    const page = parse(await answer.text());
    if (isError(answer) && !page.getElementById(form.getAttribute("id") ?? "")) {
      tell(errorOn(page) || `The service answered with an error (${answer.status}). Try again in a moment.`);
      return;
    }
    show(page, answer.url);
  } catch {
    if (request.signal.aborted) return;
    tell(
      "The service did not answer, but may have received the form. See whether it did before you send it again.",
    );
  } finally {
    clearTimeout(late);
    if (announced.textContent === waiting) announced.textContent = "";
    submitter?.removeAttribute("aria-busy");
    if (!request.signal.aborted) form.removeAttribute("aria-busy");
    if (asking?.request === request) asking = undefined;
  }
}

/** The title and the icon say the state of what the page is about. */
function showState(page: Document): void {
  document.title = page.title;
  const [old, next] = [document, page].map((one) => one.querySelector<HTMLLinkElement>("link[rel=icon]"));
  if (old && next && !old.isEqualNode(next)) old.replaceWith(document.adoptNode(next));
}

const announced = document.createElement("p");
announced.className = "hidden-text";
announced.setAttribute("role", "status");
document.body.append(announced);
const headingOf = (page: Document): string => page.querySelector("#main h1")?.textContent ?? "";

/** A screen reader says what the page is about and its state, such as the end of a deployment, when that changes by itself. */
function announceState(before: string): void {
  if (showsState() && headingOf(document) !== before) announced.textContent = headingOf(document);
}

const withoutHash = (): string => location.pathname + location.search;
/** The address of what the page shows. */
let shown = withoutHash();

/** The control of the document that took the place of one that was replaced. */
function counterpart(control: Element): HTMLElement | null {
  const around = control.closest("[id]");
  const place = around && document.getElementById(around.id);
  if (!place || around === control) return place;
  const alike = [...place.querySelectorAll<HTMLElement>(control.localName)];
  const isSame = (one: Element): boolean =>
    one.textContent === control.textContent &&
    ["href", "name", "value", "aria-label"].every(
      (name) => one.getAttribute(name) === control.getAttribute(name),
    );
  // The only button of a form may say something else afterwards.
  return alike.find(isSame) ?? (alike.length === 1 && place !== main() ? (alike[0] ?? null) : null);
}

/** Replaces the page's content by another page's. */
function show(page: Document, url: string): void {
  const [now, then] = [main(), page.querySelector<HTMLElement>("#main")];
  if (!now || !then) {
    location.assign(url);
    return;
  }
  for (const part of [".rail", ".crumbs", "#balance", "#menu-balance", "#banners", ".phone-tabs"]) {
    const [old, next] = [document.querySelector(part), page.querySelector(part)];
    if (old && next) old.replaceWith(document.adoptNode(next));
  }
  showState(page);
  const focused = now.contains(document.activeElement) ? document.activeElement : null;
  now.replaceWith(document.adoptNode(then));
  for (const script of page.querySelectorAll<HTMLScriptElement>("head script[src]"))
    void import(new URL(script.getAttribute("src") ?? "", location.href).href);
  if (url !== location.href) history.pushState(null, "", url);
  shown = withoutHash();
  prepare(then);
  showTab(then);
  const told = then.querySelector<HTMLElement>("[data-flash]");
  const first = toCorrect(then, focused) ?? told;
  if (first) {
    told?.scrollIntoView({ block: "nearest" });
    first.focus();
  } else {
    if (location.hash === "") scrollTo(0, 0);
    if (focused) keepFocus(focused, then);
  }
}

/**
 * The field that a refused form names, or else the one that it was sent from: what is typed next is meant for it, and would be shortcuts
 * elsewhere.
 */
function toCorrect(part: HTMLElement, focused: Element | null): HTMLElement | null {
  const named = part.querySelector<HTMLElement>("[aria-invalid=true]:not(fieldset)");
  const isSentFrom = part.querySelector("[data-reason]") && focused?.matches("input, select, textarea");
  const field = named ?? (isSentFrom && focused ? counterpart(focused) : null);
  return field?.checkVisibility() ? field : null;
}

/** Reading by keyboard goes on where it was, not at the top of the document: at the same control, or else in what has its place. */
function keepFocus(replaced: Element, part: HTMLElement): void {
  const control = counterpart(replaced);
  if (control?.checkVisibility()) return control.focus({ preventScroll: true });
  part.tabIndex = -1;
  part.focus({ preventScroll: true });
}
addEventListener("popstate", () => {
  // A link to a part of the page is one as well.
  if (withoutHash() !== shown) location.reload();
});

/** Says something that no page says. */
function tell(text: string): HTMLElement {
  const notice = noticeOf(text);
  notice.focus();
  return notice;
}
function noticeOf(text: string): HTMLElement {
  const notice = document.createElement("div");
  notice.className = "callout flash bad";
  notice.setAttribute("role", "alert");
  notice.tabIndex = -1;
  notice.textContent = text;
  main()?.querySelector(":scope > .flash")?.remove();
  main()?.prepend(notice);
  return notice;
}

/** The focus stays: what is typed may still be sent after signing in elsewhere. `signIn`: its address, which leads back here. */
function tellEnded(signIn: string): void {
  const notice = noticeOf("Your session has ended. What this page shows is out of date. ");
  notice.dataset["ended"] = "";
  notice.append(signInLink(signIn));
}

function signInLink(signIn: string): HTMLAnchorElement {
  const link = document.createElement("a");
  link.href = signIn;
  link.textContent = "Sign in";
  return link;
}

/** What is typed, perhaps since the link was shown, is not left for signing in. */
document.addEventListener("click", (event) => {
  const link = linkOf(event);
  if (link && isSignIn(link.href) && losesOthers(null)) link.target = "_blank";
});

// Live parts

const events = document.body.dataset["events"];
let isStale = false;
let timer: ReturnType<typeof setTimeout> | undefined;
/** The address of a page that is no longer there, and is not read again. */
let gone: string | undefined;

function changed(ids: readonly string[]): void {
  const about = (main()?.dataset["about"] ?? "").split(" ");
  if (about.includes("account") || ids.some((id) => about.includes(id))) soon();
}

/** Its state is seen in the row of tabs. */
const showsState = (): boolean => document.querySelector("link[rel=icon][data-state]") !== null;

function soon(): void {
  if (gone === shown) return;
  if (document.hidden && !showsState()) isStale = true;
  else timer ??= setTimeout(() => void refresh(), 300);
}
/** An island knows of something new. */
document.addEventListener("berth:refresh", soon);

const againMs = 3000;

let turns = 0;

async function refresh(): Promise<void> {
  // What changes from here on is read once more.
  [isStale, timer] = [false, undefined];
  const [turn, page] = [++turns, main()];
  let isMissed = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    // Too many requests, or the service is away: the page would say what is no longer so until something else changes.
    isMissed = answer.status === 429 || answer.status >= 500;
    const text = await answer.text();
    if (turn !== turns) return;
    // A form has meanwhile led to another page, or to a newer state of this one.
    if (page !== main()) {
      soon();
      return;
    }
    if (answer.status === 404 || answer.status === 410) {
      gone = shown;
      tell("This no longer exists. What this page shows is out of date.");
    }
    const told = document.querySelector("[data-ended]");
    if (answer.redirected && isSignIn(answer.url)) {
      if (!told) tellEnded(answer.url);
      return;
    }
    if (!answer.ok) return;
    told?.remove();
    const newer = parse(text);
    showState(newer);
    const heading = headingOf(document);
    for (const old of document.querySelectorAll<HTMLElement>("[data-live]")) {
      const next = newer.getElementById(old.id);
      if (!next) continue;
      const focused = old.contains(document.activeElement) ? document.activeElement : null;
      // What somebody types there is kept.
      if (focused?.matches("input, select, textarea") || hasTyped(old)) {
        isStale = true;
        continue;
      }
      // A button that is being pressed, or a form that is being sent.
      if (old.matches(":active") || old.querySelector("form[aria-busy=true]")) {
        isMissed = true;
        continue;
      }
      for (const fold of old.querySelectorAll<HTMLDetailsElement>("details[open][id]"))
        next.querySelector<HTMLDetailsElement>(`#${CSS.escape(fold.id)}`)?.setAttribute("open", "");
      prepare(next);
      if (old.isEqualNode(next)) continue;
      old.replaceWith(document.adoptNode(next));
      if (focused) keepFocus(focused, next);
    }
    announceState(heading);
    document.dispatchEvent(new CustomEvent("berth:read", { detail: newer }));
  } catch {
    // The connection broke, perhaps for a moment.
  } finally {
    if (isMissed) timer ??= setTimeout(() => void refresh(), againMs);
  }
}

function take(event: MessageEvent<string>): void {
  const message = JSON.parse(event.data) as Record<string, unknown>;
  // The balance stands on every page.
  if (message["type"] === "credits") soon();
  changed(Object.values(message).filter((value) => typeof value === "string"));
  document.dispatchEvent(new CustomEvent("berth:event", { detail: message }));
}

let refusals = 0;

function listen(address: string): void {
  const stream = new EventSource(address);
  for (const type of ["change", "message"]) stream.addEventListener(type, take as EventListener);
  stream.addEventListener("reset", () =>
    changed(["account", ...(main()?.dataset["about"] ?? "").split(" ")]),
  );
  stream.addEventListener("open", () => {
    // A new stream does not tell what changed before it.
    if (refusals > 0) soon();
    refusals = 0;
  });
  // Whoever has signed out is refused too: the page says so, and goes on after signing in again in another tab.
  stream.addEventListener("error", () => {
    if (stream.readyState !== EventSource.CLOSED) return;
    if (refusals === 0) soon();
    setTimeout(() => listen(address), waitMs(++refusals));
  });
}

/** What was kept because of what somebody typed is made up for. */
document.addEventListener("focusout", () => {
  if (isStale) soon();
});

if (events !== undefined) {
  listen(events);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isStale) void refresh();
  });
}

setInterval(() => {
  if (document.querySelector("[data-polled]")) soon();
}, 3000);

// A browser asks for a page when its link is pressed (worker/pages/kit/prefetch.ts), and keeps it for minutes if it is not opened.

const pressed = new Map<string, number>();
const oldMs = 2000;
const linkOf = (event: Event) => (event.target as Element).closest<HTMLAnchorElement>("a[href]");
document.addEventListener("pointerdown", (event) => {
  const link = linkOf(event);
  if (link && !pressed.has(link.href)) pressed.set(link.href, Date.now());
});
document.addEventListener("click", (event) => {
  const link = linkOf(event);
  if (link && Date.now() - (pressed.get(link.href) ?? Infinity) > oldMs)
    sessionStorage.setItem("old-page", link.href);
});
if (sessionStorage.getItem("old-page") === location.href) soon();
sessionStorage.removeItem("old-page");

// Times and copying

/** When the page came with what counts on from there, by the browser's own clock. */
const countsFrom = new WeakMap<HTMLElement, number>();

/** What is still going on takes longer by the second. */
function countOn(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLElement>("[data-counts]")) {
    const from = countsFrom.get(time) ?? performance.now();
    countsFrom.set(time, from);
    time.textContent = duration(Number(time.dataset["counts"]) + performance.now() - from);
  }
}
setInterval(() => countOn(document), 1000);

function prepare(root: ParentNode): void {
  countOn(root);
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
    const said = time.querySelector(".ago");
    if (said) said.textContent = ago(time.dateTime, Date.now());
  }
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-titled]"))
    time.title = localTime(time.dateTime);
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]"))
    time.textContent = localTime(time.dateTime, "to the minute");
}
prepare(document);
/** The tab that is open is seen, where the row of tabs is longer than the screen. */
function showTab(root: ParentNode): void {
  const [row, tab] = [root.querySelector(".tabs"), root.querySelector<HTMLElement>(".tabs [aria-current]")];
  if (row && tab && row.scrollWidth > row.clientWidth)
    row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}
showTab(document);
setInterval(() => prepare(document), 30_000);

document.addEventListener("click", (event) => {
  const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
  if (button) void copy(button);
});

/** By button: what shows its own label again. */
const relabels = new WeakMap<HTMLElement, number>();

async function copy(button: HTMLElement): Promise<void> {
  const label = (button.dataset["label"] ??= button.textContent);
  try {
    await navigator.clipboard.writeText(button.dataset["copy"] ?? "");
    button.textContent = "Copied";
  } catch {
    // Without HTTPS, or where it is not allowed, no page reaches the clipboard: the keys do.
    if (button.previousElementSibling) getSelection()?.selectAllChildren(button.previousElementSibling);
    button.textContent = "Not copied: press Ctrl+C";
  }
  // What an earlier press set off would take this one's answer away.
  clearTimeout(relabels.get(button));
  const relabel = setTimeout(() => (button.textContent = label), 1500);
  relabels.set(button, relabel);
}

/** A menu closes when something else is used, unless something is typed there. */
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]"))
    if (!menu.contains(event.target as Node) && !hasTyped(menu)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape")
    for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary")?.focus();
    }
});

// The assistant beside the page

/** What was typed in the panel and not sent when it was closed. */
let draft = "";

async function openAssistant(link: HTMLAnchorElement): Promise<void> {
  const about = (main()?.dataset["about"] ?? "").split(" ").find((id) => id.includes("_")) ?? "";
  const url = new URL(link.href);
  const conversation = sessionStorage.getItem("conversation");
  if (about !== "") url.searchParams.set("about", about);
  if (conversation !== null) url.searchParams.set("conversation", conversation);
  let answer = await fetch(url, { headers: { Accept: "text/html" } });
  if (answer.status === 404 || answer.status === 403) {
    // The conversation was deleted, or is of another account.
    sessionStorage.removeItem("conversation");
    url.searchParams.delete("conversation");
    answer = await fetch(url, { headers: { Accept: "text/html" } });
  }
  const page = parse(await answer.text());
  const chat = page.querySelector("berth-chat");
  if (!chat || isSignIn(answer.url)) {
    location.assign(link.href);
    return;
  }
  const panel = document.createElement("aside");
  panel.className = "panel";
  panel.setAttribute("aria-label", "Assistant");
  const head = document.createElement("header");
  const title = document.createElement("b");
  title.textContent = "Assistant";
  const buttons = document.createElement("span");
  buttons.className = "buttons";
  const fresh = document.createElement("button");
  fresh.textContent = "New";
  const close = document.createElement("button");
  close.textContent = "Close";
  fresh.className = close.className = "ghost";
  fresh.type = close.type = "button";
  buttons.append(fresh, close);
  head.append(title, buttons);
  const shut = () => {
    draft = panel.querySelector("textarea")?.value ?? "";
    panel.remove();
    document.querySelector<HTMLElement>("[data-assistant]")?.focus();
  };
  close.addEventListener("click", shut);
  fresh.addEventListener("click", () => {
    sessionStorage.removeItem("conversation");
    panel.remove();
    void openAssistant(link);
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") shut();
  });
  panel.append(head, document.adoptNode(chat));
  document.querySelector(".panel")?.remove();
  document.body.append(panel);
  for (const script of page.querySelectorAll<HTMLScriptElement>("head script[src]"))
    await import(new URL(script.getAttribute("src") ?? "", location.href).href);
  prepare(panel);
  const field = panel.querySelector("textarea");
  if (field) field.value = draft;
  field?.focus();
}

document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest<HTMLAnchorElement>("a[data-assistant]");
  if (!link || event.metaKey || event.ctrlKey || location.pathname === "/assistant") return;
  event.preventDefault();
  void openAssistant(link);
});

// Search or jump to: the program is loaded at the first use

type Palette = { openPalette(): void; openShortcuts(): void };
async function palette(use: (program: Palette) => void): Promise<void> {
  const address = document.querySelector<HTMLElement>("[data-palette]")?.dataset["palette"];
  if (address !== undefined) use((await import(new URL(address, location.href).href)) as Palette);
}
const openPalette = () => void palette((program) => program.openPalette());
const openShortcuts = () => void palette((program) => program.openShortcuts());

/** After g. */
const places: Readonly<Record<string, string>> = {
  h: "/",
  s: "/sites",
  d: "/databases",
  a: "/activity",
  b: "/billing",
  k: "/account/keys",
  o: "/operator",
};
let isAfterG = false;
let afterG: ReturnType<typeof setTimeout> | undefined;
/** Single keys are off where somebody types, and where they were switched off. */
const takesKeys = (target: Element): boolean =>
  !target.closest("input, textarea, select, dialog, berth-log, [contenteditable]") &&
  localStorage.getItem("shortcuts") !== "off";

document.addEventListener("keydown", (event) => {
  const { key } = event;
  if ((event.metaKey || event.ctrlKey) && key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || !takesKeys(event.target as Element)) return;
  const place = isAfterG ? places[key] : undefined;
  isAfterG = key === "g" && !isAfterG;
  // What an earlier g set off would end this one.
  clearTimeout(afterG);
  if (isAfterG) afterG = setTimeout(() => (isAfterG = false), 1500);
  else if (place !== undefined) location.assign(place);
  else if (key === "?") openShortcuts();
  // To the button, not through it: Enter deploys.
  else if (key === "d") document.querySelector<HTMLElement>("#form-deploy button")?.focus();
  else if (key === "/") {
    event.preventDefault();
    openPalette();
  }
});
document.addEventListener("click", (event) => {
  const target = event.target as Element;
  if (target.closest("[data-palette]")) openPalette();
  if (target.closest("[data-shortcuts]")) openShortcuts();
});

// What a value means, told by the page while it is typed

let telling: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("input", (event) => {
  const field = event.target as HTMLInputElement;
  const name = field.dataset["tells"];
  if (name === undefined) return;
  clearTimeout(telling);
  telling = setTimeout(() => void tellOf(field, name), 400);
});

async function tellOf(field: HTMLInputElement, name: string): Promise<void> {
  const { value } = field;
  try {
    const query = new URLSearchParams({ [name]: value });
    const answer = await fetch(`${location.pathname}?${query}`, { headers: { Accept: "text/html" } });
    const told = parse(await answer.text()).getElementById(`telling-${name}`);
    if (!told || field.value !== value) return;
    prepare(told);
    field.parentElement?.querySelector("[data-told]")?.replaceChildren(...told.childNodes);
  } catch {
    // The form says the same when it is sent.
  }
}

/** A box that shows what is typed into a password's field. */
document.addEventListener("change", (event) => {
  const box = event.target as HTMLInputElement;
  const field = document.getElementById(box.dataset["reveals"] ?? "");
  if (field instanceof HTMLInputElement) field.type = box.checked ? "text" : "password";
});
