/** Checks the repository as it is typed, and sums up. Without it a button does the one, the payment page the other. */

import { errorOn } from "../lib/error-page.ts";

type Prices = Record<string, { name: string; currency: string; terms: Record<string, number> }>;

const looksComplete = (text: string): boolean => /^\S*[^\s/]+\/[^\s/]+\/[^\s/]+$/.test(text.trim());

/** What a refused form says beside its fields. */
const problemsOn = (page: Document): string =>
  [...page.querySelectorAll(".field > .problem")]
    .map(
      (problem) => `${problem.parentElement?.querySelector("label")?.textContent}: ${problem.textContent}.`,
    )
    .join(" ");

/** What stands in these fields without having been typed; kept for the element that shows a refused form again. */
let suggested: Record<string, string> = {};

class NewSite extends HTMLElement {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private request: XMLHttpRequest | undefined;
  private checked = "";

  connectedCallback(): void {
    if (this.dataset["typed"] === undefined) suggested = { port: this.field("port")?.defaultValue ?? "" };
    this.addEventListener("input", this.typed);
    this.addEventListener("change", this.sum);
    this.addEventListener("submit", this.sent);
    // Of a page that is gone back to, the browser restores the fields just before.
    addEventListener("pageshow", this.begin);
    this.begin();
  }
  disconnectedCallback(): void {
    removeEventListener("pageshow", this.begin);
    clearTimeout(this.timer);
    this.request?.abort();
  }

  private readonly begin = (): void => {
    this.sum();
    if (this.querySelector("#found > *") === null) this.later();
  };

  private get form(): HTMLFormElement | null {
    return this.querySelector("form");
  }
  private field(name: string): HTMLInputElement | null {
    return this.querySelector<HTMLInputElement>(`[name="${name}"]`);
  }

  private readonly typed = (event: Event): void => {
    const { name } = event.target as HTMLInputElement;
    if (["githubUrl", "branch", "rootDir", "gitToken"].includes(name)) this.later();
  };

  /** The page that answers a form has no token in it, so to check only, none is sent. */
  private readonly sent = (event: SubmitEvent): void => {
    if (event.submitter?.getAttribute("name") !== "check") return;
    event.preventDefault();
    // Enter in a field is the first button's, which is this one.
    const [create] = this.querySelectorAll<HTMLElement>("button[type=submit]:not([name=check])");
    if (create && this.form && new FormData(this.form).get("deployType") !== "github")
      return this.form.requestSubmit(create);
    clearTimeout(this.timer);
    this.checked = "";
    this.check();
  };

  private isTyped({ name, value }: HTMLInputElement): boolean {
    return value !== "" && value !== suggested[name];
  }

  private later(): void {
    clearTimeout(this.timer);
    if (looksComplete(this.field("githubUrl")?.value ?? "")) this.timer = setTimeout(() => this.check(), 700);
  }

  /** The answer is the page with what was found: its parts replace those of this one. */
  private check(): void {
    const form = this.form;
    const found = this.querySelector<HTMLElement>("#found");
    if (!form || !found) return;
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string") fields.append(name, value);
    fields.set("check", "true");
    // What was suggested for another repository must not pass for what was typed.
    for (const name of ["name", "port"]) {
      const field = this.field(name);
      if (field && !this.isTyped(field)) fields.delete(name);
    }
    const asked = ["githubUrl", "branch", "rootDir", "gitToken"].map((name) => fields.get(name)).join("\n");
    if (asked === this.checked) return;
    this.checked = asked;
    this.request?.abort();
    const request = new XMLHttpRequest();
    this.request = request;
    request.open("POST", location.pathname);
    request.setRequestHeader("Content-Type", "application/x-www-form-urlencoded");
    request.setRequestHeader("Accept", "text/html");
    request.responseType = "document";
    const note = document.createElement("p");
    const fail = (why: string) => {
      // The same may be asked again.
      this.checked = "";
      note.className = "problem";
      note.textContent = why && `The repository was not checked. ${why}`;
    };
    request.addEventListener("load", () => {
      const page = request.response as Document | null;
      if (request.status === 200 && page?.querySelector("#found")) this.take(page);
      else fail(page ? problemsOn(page) || errorOn(page) : "");
    });
    request.addEventListener("error", () => fail(""));
    request.addEventListener("loadend", () => found.removeAttribute("aria-busy"));
    note.className = "soft";
    note.textContent = "Checking the repository …";
    found.replaceChildren(note);
    found.setAttribute("aria-busy", "true");
    request.send(fields);
  }

  private take(page: Document): void {
    for (const id of ["found", "branches", "folders"]) {
      const [now, then] = [this.querySelector(`#${id}`), page.querySelector(`#${id}`)];
      if (now && then) now.replaceChildren(...then.childNodes);
    }
    const anyway = page.querySelector("[name=anyway]")?.closest("label");
    this.querySelector("[name=anyway]")?.closest("label")?.remove();
    if (anyway) this.querySelector("#found")?.after(anyway);
    for (const name of ["name", "port"]) {
      const [field, then] = [this.field(name), page.querySelector<HTMLInputElement>(`[name="${name}"]`)];
      if (field && then && !this.isTyped(field)) field.value = suggested[name] = then.value;
    }
    for (const name of ["buildCommand", "startCommand"]) {
      const [field, then] = [this.field(name), page.querySelector<HTMLInputElement>(`[name="${name}"]`)];
      if (field && then) field.placeholder = then.placeholder;
    }
    const hint = "[id$=variables-hint]";
    const [now, then] = [this.querySelector(hint), page.querySelector(hint)];
    if (now && then) now.textContent = then.textContent;
  }

  private readonly sum = (): void => {
    const form = this.form;
    if (!form) return;
    const prices = JSON.parse(this.dataset["prices"] ?? "{}") as Prices;
    const fields = new FormData(form);
    const text = (name: string): string => {
      const value = fields.get(name);
      return typeof value === "string" ? value : "";
    };
    const months = text("billingTerm");
    const plan = prices[text("packId")];
    const beside = text("database") === "" ? undefined : prices[text("databasePackId")];
    if (!plan) return;
    const format = new Intl.NumberFormat("en-US", { style: "currency", currency: plan.currency });
    const money = (cents: number) => format.format(cents / 100);
    const site = plan.terms[months] ?? 0;
    const database = beside?.terms[months] ?? 0;
    const shown: Record<string, string> = {
      plan: plan.name,
      site: money(site),
      database: beside ? money(database) : "none",
      all: money(site + database),
      button: `Create and pay ${money(site + database)}`,
    };
    for (const part of this.querySelectorAll<HTMLElement>("[data-sum]"))
      part.textContent = shown[part.dataset["sum"] ?? ""] ?? part.textContent;
  };
}

customElements.define("new-site", NewSite);
