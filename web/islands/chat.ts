import { createParser } from "eventsource-parser";
import type { ChatReply } from "../../protocol/api/chat.ts";
import { lookingAt } from "../../protocol/looking-at.ts";
import { splitAtAddresses } from "../../protocol/own-addresses.ts";
import { isYes } from "../../protocol/yes.ts";

/**
 * A conversation with the assistant: streams its answer, folds its steps, and shows what waits for the person's word. The server
 * renders the conversation so far and the form. Everything of the conversation becomes text, never HTML.
 */
class Chat extends HTMLElement {
  private stopping: AbortController | null = null;

  connectedCallback(): void {
    this.addEventListener("submit", (event) => {
      const form = event.target as HTMLFormElement;
      // Also those that the server renders for what waits.
      if (!form.matches("form[id^='form-say']")) return;
      event.preventDefault();
      event.stopPropagation();
      const fields = new FormData(form);
      void this.send(textOf(fields.get("message")).trim(), textOf(fields.get("confirm")) || undefined);
    });
    this.addEventListener("click", (event) => {
      const button = (event.target as Element).closest("button");
      if (button?.matches("[data-example]")) {
        this.field.value = button.textContent;
        this.field.focus();
      }
      if (button?.matches("[data-stop]")) this.stopping?.abort();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.send(this.field.value.trim());
    });
    this.field.enterKeyHint = "send";
    this.messages.scrollTop = this.messages.scrollHeight;
  }

  private get field(): HTMLTextAreaElement {
    return part<HTMLTextAreaElement>(this, "textarea");
  }
  private get messages(): HTMLElement {
    return part(this, ".messages");
  }
  /** What scrolls: the conversation on its own page, all of the panel beside another. */
  private get view(): HTMLElement {
    return this.closest<HTMLElement>(".panel") ?? this.messages;
  }
  private toEnd(): void {
    this.view.scrollTop = this.view.scrollHeight;
  }
  /** Whoever has scrolled up reads on there. */
  private get isAtEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.view;
    return scrollHeight - scrollTop - clientHeight < 40;
  }

  private add(role: "user" | "assistant", text: string): HTMLElement {
    const message = element("div", `message ${role}`);
    message.append(
      element("p", "soft small", role === "user" ? "You" : "Assistant"),
      element("div", "text", text),
    );
    this.messages.append(message);
    this.toEnd();
    return message;
  }

  /** The ids of the actions on screen, which the server renders as fields of forms. */
  private get shown(): NodeListOf<HTMLButtonElement | HTMLInputElement> {
    return this.querySelectorAll("[name=confirm]");
  }

  /** What a yes is about: nothing that is not shown here, such as the end of a stopped answer or what another tab was asked. */
  private get meant(): string {
    return this.shown[0]?.value ?? "none";
  }

  private async send(text: string, confirm = isYes(text) ? this.meant : undefined): Promise<void> {
    if (text === "" || this.stopping) return;
    const isFirst = this.dataset["conversation"] === "";
    // A word of consent is nothing but that.
    const about = isYes(text) ? "" : (this.dataset["about"] ?? "");
    this.add("user", text);
    this.field.value = "";
    const answer = this.add("assistant", "");
    answer.setAttribute("aria-busy", "true");
    const stop = this.querySelector<HTMLButtonElement>("[data-stop]");
    if (stop) stop.hidden = false;
    this.stopping = new AbortController();
    let isLost = true;
    try {
      const response = await fetch("/api/v1/chat/stream", {
        method: "POST",
        signal: this.stopping.signal,
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({
          message: lookingAt(text, about),
          ...(!isFirst && { conversationId: this.dataset["conversation"] }),
          ...(confirm !== undefined && { confirm }),
        }),
      });
      isLost = false;
      if (!response.ok || !response.body) return this.refused(answer, text, response);
      // Told once; the server renders what no message has told yet.
      if (about !== "") this.dataset["about"] = "";
      for (const asked of this.shown) {
        const card = asked.closest(".callout");
        this.keepFocus(card);
        card?.remove();
      }
      const parser = createParser({
        onEvent: ({ event, data }) =>
          this.take(answer, event ?? "message", JSON.parse(data) as Record<string, unknown>),
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        parser.feed(value);
      }
    } catch {
      const isStopped = this.stopping.signal.aborted;
      if (isLost && !isStopped) this.field.value = text;
      const shown = isStopped
        ? "Stopped here. What had already started is still completed; reload the conversation to see it."
        : isLost
          ? mayHaveArrived
          : "The connection was interrupted. Reload the conversation to see the answer.";
      answer.append(element("p", "warn small", shown));
    } finally {
      this.stopping = null;
      answer.removeAttribute("aria-busy");
      this.keepFocus(stop);
      if (stop) stop.hidden = true;
    }
  }

  /** Whoever has pressed what goes away continues in the field. */
  private keepFocus(pressed: Element | null): void {
    if (pressed?.contains(document.activeElement)) this.field.focus();
  }

  /** What was typed comes back into the field. */
  private async refused(answer: HTMLElement, text: string, response: Response): Promise<void> {
    const said = (await response.json().catch(() => ({}))) as { error?: string; reason?: string };
    const shown =
      response.status === 402
        ? tooFewCredits
        : response.status === 429
          ? `Too many messages: try again in ${waitWords(Number(response.headers.get("Retry-After") ?? 60))}.`
          : response.status === 401
            ? "You are signed out. Sign in in another tab, then send it again."
            : (said.reason ?? mayHaveArrived);
    answer.append(element("p", "bad", shown));
    this.field.value = text;
  }

  private take(answer: HTMLElement, type: string, data: Record<string, unknown>): void {
    const text = part(answer, ".text");
    const { isAtEnd } = this;
    switch (type) {
      case "conversation":
        this.goesOn(textOf(data["conversationId"]));
        break;
      case "delta":
        text.append(textOf(data["text"]));
        break;
      case "tool":
        this.step(answer, textOf(data["tool"]), textOf(data["status"]));
        break;
      case "action":
        this.ask(answer, data["pendingAction"] as NonNullable<ChatReply["pendingAction"]>);
        break;
      case "done": {
        const reply = data as unknown as ChatReply;
        text.replaceChildren(...linked(reply.message));
        const balance = this.querySelector("[data-balance]");
        if (balance) balance.textContent = credits(reply.balance);
        answer.append(element("p", "soft small", credits(reply.creditsUsed)));
        break;
      }
      case "error":
        answer.append(
          element(
            "p",
            "bad",
            data["error"] === "payment_required"
              ? tooFewCredits
              : textOf(data["message"] ?? data["reason"]) || "The assistant did not answer. It cost nothing.",
          ),
        );
        break;
    }
    if (isAtEnd) this.toEnd();
  }

  /** Its page, or the panel on any other, shows this conversation when it is loaded again. */
  private goesOn(conversation: string): void {
    this.dataset["conversation"] = conversation;
    sessionStorage.setItem("conversation", conversation);
    if (location.pathname !== "/assistant") return;
    const url = new URL(location.href);
    url.searchParams.set("conversation", conversation);
    history.replaceState(history.state, "", url);
  }

  /** The steps of an answer are folded: `list_sites` reads "list sites". */
  private step(answer: HTMLElement, tool: string, status: string): void {
    let fold = answer.querySelector<HTMLDetailsElement>("details.steps");
    if (!fold) {
      fold = document.createElement("details");
      fold.className = "steps small soft";
      fold.append(element("summary", ""), element("ul", ""));
      part(answer, ".text").before(fold);
    }
    const list = part(fold, "ul");
    const running = [...list.children].find((one) => (one as HTMLElement).dataset["running"] === tool);
    const words = { running: "…", done: "done", refused: "refused", asks: "asks you" }[status] ?? status;
    const line = running ?? list.appendChild(element("li", ""));
    line.textContent = `${tool.replaceAll("_", " ")}: ${words}`;
    if (status === "running") (line as HTMLElement).dataset["running"] = tool;
    else delete (line as HTMLElement).dataset["running"];
    part(fold, "summary").textContent =
      `${list.children.length} ${list.children.length === 1 ? "step" : "steps"}`;
  }

  private ask(answer: HTMLElement, { id, summary }: NonNullable<ChatReply["pendingAction"]>): void {
    const card = element("section", "callout warn pending");
    card.append(element("h2", "warn", "This needs your confirmation"), element("p", "text", summary));
    const buttons = element("div", "buttons");
    const confirm = element("button", "primary", "Confirm") as HTMLButtonElement;
    const decline = element("button", "", "Decline") as HTMLButtonElement;
    confirm.type = decline.type = "button";
    confirm.name = "confirm";
    confirm.value = id;
    confirm.addEventListener("click", () => void this.send("yes", id));
    decline.addEventListener("click", () => void this.send("No, do not do that."));
    buttons.append(confirm, decline);
    card.append(buttons);
    answer.append(card);
  }
}

const tooFewCredits = "You have too few credits for a message. Buy credits under Billing.";

const mayHaveArrived =
  "The service did not answer, but may have received the message. Reload the conversation to see whether it did before you send it again.";

const credits = (amount: number): string =>
  `${Math.round(amount * 100) / 100} ${amount === 1 ? "credit" : "credits"}`;

/** Only this service's own addresses, such as an invoice's: others may come from a line of a log. */
const linked = (text: string): (Node | string)[] =>
  splitAtAddresses(text, location.origin).map((one, index) => {
    if (index % 2 === 0) return one;
    const link = element("a", "", one) as HTMLAnchorElement;
    link.href = one;
    return link;
  });

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** A part that the server rendered or this program made. */
function part<Part extends HTMLElement = HTMLElement>(of: Element, selector: string): Part {
  const found = of.querySelector<Part>(selector);
  if (!found) throw new Error(`${selector} is missing`);
  return found;
}

function element(name: string, className: string, text = ""): HTMLElement {
  const made = document.createElement(name);
  if (className !== "") made.className = className;
  made.textContent = text;
  return made;
}

/** The limit of a minute, or what is left of that of a day. */
const waitWords = (seconds: number): string =>
  seconds <= 90
    ? "a minute"
    : seconds <= 5400
      ? `${Math.ceil(seconds / 60)} minutes`
      : `${Math.ceil(seconds / 3600)} hours`;

if (!customElements.get("berth-chat")) customElements.define("berth-chat", Chat);
