/** Looks for new requests of a site as they come: `data-stream` is the API's address of them. The page's live parts show them. */

const atMostEveryMs = 1000;

class LiveRequests extends HTMLElement {
  #stream: EventSource | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStale = false;
  #failures = 0;
  readonly #button = document.createElement("button");
  readonly #state = document.createElement("span");

  connectedCallback(): void {
    this.#button.type = "button";
    this.#button.addEventListener("click", () => (this.#stream ? this.#close() : this.#open()));
    this.#state.setAttribute("role", "status");
    this.replaceChildren(this.#state, this.#button);
    this.#open();
  }
  disconnectedCallback(): void {
    this.#close();
  }

  #open(): void {
    const stream = new EventSource(this.dataset["stream"] ?? "");
    this.#stream = stream;
    stream.addEventListener("open", () => {
      this.#failures = 0;
      this.#say();
    });
    stream.addEventListener("request", () => this.#come());
    stream.addEventListener("error", () => {
      this.#failures++;
      // The service refused: asking again and again would not help.
      if (stream.readyState === EventSource.CLOSED) this.#close();
      this.#say();
    });
    this.#say();
  }

  #close(): void {
    this.#stream?.close();
    this.#stream = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#say();
  }

  /** The first at once, those that follow closely together. */
  #come(): void {
    if (this.#timer !== undefined) {
      this.#isStale = true;
      return;
    }
    document.dispatchEvent(new CustomEvent("berth:refresh"));
    this.#isStale = false;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#isStale) this.#come();
    }, atMostEveryMs);
  }

  #say(): void {
    const isLive = this.#stream !== undefined;
    this.#button.textContent = isLive ? "Pause" : "Follow";
    this.#state.textContent = !isLive ? "Paused" : this.#failures > 0 ? "Reconnecting …" : "Live";
  }
}

customElements.define("live-requests", LiveRequests);
