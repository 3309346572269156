import type { EnvVariable } from "../../protocol/api/sites.ts";
import { parseEnvFile } from "../../protocol/env-file.ts";

/** `isEdit`: of a variable's menu, whose fields the server filled: the value is kept where it is as it was shown. */
type Change = EnvVariable & { isEdit?: boolean };

/** What the form has now is what it comes back to: it is staged, and is there if it is edited again. */
function asSent(form: HTMLFormElement): void {
  for (const field of form.querySelectorAll("textarea")) field.defaultValue = field.value;
  for (const option of form.querySelectorAll("option")) option.defaultSelected = option.selected;
  for (const box of form.querySelectorAll("input")) box.defaultChecked = box.checked;
}

/** What was staged when another form of the page was sent, whose answer takes the place of the element. */
let waiting: readonly Change[] = [];

/**
 * Variables of a site: what the page's forms change is collected and saved at once, as one version of the environment. Without a
 * script each form saves by itself.
 */
class Variables extends HTMLElement {
  readonly #changes = new Map<string, Change>();
  #sends = false;

  connectedCallback(): void {
    this.classList.add("stages");
    this.addEventListener("submit", (event) => this.#stage(event), true);
    this.#bar()
      ?.querySelector("[data-discard]")
      ?.addEventListener("click", () => {
        this.#changes.clear();
        this.#show();
        this.querySelector<HTMLElement>("#form-set [name=key]")?.focus();
      });
    for (const saves of this.querySelectorAll<HTMLElement>("[data-saves]")) {
      const button = saves.querySelector("button");
      if (button && saves.dataset["saves"]) button.textContent = saves.dataset["saves"];
    }
    addEventListener("beforeunload", this.#warn);
    for (const name of this.querySelectorAll<HTMLInputElement>("#form-set [name=key]"))
      name.addEventListener("input", () => this.#check(name));
    for (const file of this.querySelectorAll<HTMLTextAreaElement>("[name=file]"))
      file.addEventListener("input", () => this.#checkFile(file));
    this.#stageAgain();
  }
  disconnectedCallback(): void {
    removeEventListener("beforeunload", this.#warn);
  }

  readonly #warn = (event: BeforeUnloadEvent): void => {
    if (this.#changes.size > 0 && !this.#sends) event.preventDefault();
  };

  /** Where saving was refused, the page has what was sent. */
  #stageAgain(): void {
    const refused = this.#field()?.value ?? "";
    const changes = refused === "" ? waiting : (JSON.parse(refused) as Change[]);
    waiting = [];
    if (changes.length === 0) return;
    for (const change of changes) this.#changes.set(change.key, change);
    this.#show();
  }

  #bar(): HTMLFormElement | null {
    return this.querySelector<HTMLFormElement>("form.staged");
  }
  #field(): HTMLInputElement | null {
    return this.querySelector<HTMLInputElement>("form.staged [name=changes]");
  }
  #row(key: string): HTMLElement | null {
    return this.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(key)}"]`);
  }
  /** A warning where a link to a database sets one of these; saving them would be refused. */
  #linked(keys: readonly string[]): string {
    const linked = keys.filter((key) => this.querySelector(`tr[data-linked="${CSS.escape(key)}"]`));
    return linked.length > 0
      ? `The link to a database sets ${linked.join(", ")}: remove the link first, or use another name.`
      : "";
  }

  /** Names are marked while they are typed. */
  #check(name: HTMLInputElement): void {
    const isKnown = this.#row(name.value) !== null || this.#changes.has(name.value);
    name.setCustomValidity("");
    this.#tell(
      name,
      name.value !== "" && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name.value)
        ? "A name has letters, digits and _, and does not start with a digit."
        : this.#linked([name.value]) || (isKnown ? "This name exists: its value is replaced." : ""),
    );
  }

  /** So are the lines of a file, but for the one that is being written. */
  #checkFile(file: HTMLTextAreaElement): void {
    const typed = file.value.slice(0, file.selectionStart).split("\n").length;
    const { variables, problems } = parseEnvFile(file.value);
    const problem = problems.find(({ line }) => line !== typed);
    const keys = variables.map(({ key }) => key);
    const known = keys.filter((key) => this.#row(key) || this.#changes.has(key));
    this.#tell(
      file,
      problem
        ? `Line ${problem.line}: ${problem.text}.`
        : this.#linked(keys) || (known.length > 0 ? `Replaced: ${known.join(", ")}.` : ""),
    );
  }

  #tell(field: HTMLElement, text: string): void {
    let hint = field.parentElement?.querySelector<HTMLElement>(".known");
    if (!hint) {
      hint = document.createElement("span");
      hint.className = "hint known";
      hint.setAttribute("role", "status");
      field.after(hint);
    }
    hint.textContent = text;
  }

  #stage(event: SubmitEvent): void {
    const form = event.target as HTMLFormElement;
    const fields = new FormData(form);
    const text = (name: string): string => {
      const value = fields.get(name);
      return typeof value === "string" ? value : "";
    };
    const kind = text("form").split(":")[0];
    const scope = text("scope") as NonNullable<EnvVariable["scope"]> | "";
    const secret = text("encrypted") === "true";
    const more = { ...(scope !== "" && { scope }), ...(secret && { encrypted: true }) };
    let staged: Change[] = [];
    if (kind === "many") {
      const { variables, problems } = parseEnvFile(text("file"));
      // The server says what is wrong with it.
      if (problems.length === 0) staged = variables.map((variable) => ({ ...variable, ...more }));
    } else if (kind === "set" || kind === "unset")
      staged = [
        {
          key: text("key"),
          value: kind === "unset" ? null : text("value"),
          ...more,
          ...(kind === "set" && { isEdit: text("form") !== "set" && text("empty") !== "true" }),
        },
      ];
    if (staged.length === 0) {
      waiting = kind === "changes" ? [] : [...this.#changes.values()];
      // What is saved now, or staged again on this page, is not what leaving it would lose.
      this.#sends = kind === "changes" || !form.hasAttribute("action");
      setTimeout(() => (this.#sends = false), 10_000);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    for (const change of staged) this.#changes.set(change.key, change);
    const menu = form.closest<HTMLDetailsElement>("details.edit");
    menu?.removeAttribute("open");
    menu?.querySelector("summary")?.focus();
    if (kind === "many" || text("form") === "set") form.reset();
    else asSent(form);
    this.#show();
    this.#bar()?.scrollIntoView({ block: "nearest" });
  }

  #show(): void {
    for (const mark of this.querySelectorAll(".unsaved")) mark.remove();
    for (const row of this.querySelectorAll("tr.gone")) row.classList.remove("gone");
    for (const row of this.querySelectorAll("tr.fresh")) row.remove();
    for (const { key, value } of this.#changes.values()) {
      const row = this.#row(key) ?? this.#newRow(key);
      const mark = document.createElement("span");
      const isRefused = this.#linked([key]) !== "";
      mark.className = `dot ${isRefused ? "bad" : "busy"} unsaved`;
      mark.textContent =
        value === null ? "to be removed" : isRefused ? "the link to a database sets it" : "not saved";
      row?.querySelector("td")?.append(mark, this.#takeBack(key));
      row?.classList.toggle("gone", value === null);
    }
    const bar = this.#bar();
    if (!bar) return;
    bar.hidden = this.#changes.size === 0;
    const text = this.#changes.size === 1 ? "1 change" : `${this.#changes.size} changes`;
    const [count, told] = [bar.querySelector("[data-count]"), this.querySelector("[data-staged]")];
    if (count) count.textContent = text;
    if (told) told.textContent = this.#changes.size === 0 ? "" : `${text} not saved`;
    const field = this.#field();
    if (field) field.value = JSON.stringify([...this.#changes.values()]);
  }

  #takeBack(key: string): HTMLElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ghost unsaved";
    button.textContent = "Take back";
    button.setAttribute("aria-label", `Take back: ${key}`);
    button.addEventListener("click", () => {
      this.#changes.delete(key);
      this.#show();
      // The button that had the focus is gone.
      this.querySelector<HTMLElement>("button.unsaved, #form-set [name=key]")?.focus();
    });
    return button;
  }

  #newRow(key: string): HTMLElement | null {
    const body = this.querySelector("table.variables tbody");
    if (!body) return null;
    const row = document.createElement("tr");
    row.className = "fresh";
    const cell = document.createElement("td");
    cell.colSpan = 3;
    const name = document.createElement("code");
    name.textContent = key;
    cell.append(name, " ");
    row.append(cell);
    body.append(row);
    return row;
  }
}

if (!customElements.get("berth-variables")) customElements.define("berth-variables", Variables);
