import type { LogLine } from "../../protocol/api/deployments.ts";
import { stepNames, type DeploymentStep } from "../../protocol/deployment-steps.ts";
import { localDay, localTime } from "../../protocol/days.ts";
import { duration } from "../../protocol/duration.ts";
import { runsOf, uncoloured } from "../lib/ansi.ts";
import { waitMs } from "../lib/refused.ts";
import { rowsOf } from "../lib/rows.ts";
import { isAtLeast, structured, type Level } from "../lib/structured.ts";

/** What a deployment wrote in one of its steps. The one that goes on, or the last, is open; the others are folded. */
type Step = {
  step: DeploymentStep;
  /** Of its first line: it stands before it. */
  seq: number;
  at: string;
  /** When the next began. */
  endedAt: string | null;
  /** Lines that pass the filters. */
  count: number;
  /** The reader's choice. */
  isOpen: boolean | null;
};

/** `text` without colours, for searching; `raw` with them; `written` as the app wrote it, for copying. JSON is made readable. */
type Line = Pick<LogLine, "seq" | "at" | "stream"> & {
  replica: number;
  text: string;
  raw: string;
  written: string;
  level: Level | null;
  /** It says how many lines are missing here, so no filter hides it. */
  isGap: boolean;
  part: Step | null;
};
type Row = Line | Step;
const tookOf = ({ dataset }: HTMLElement) =>
  JSON.parse(dataset["took"] ?? "{}") as Record<DeploymentStep, number | null>;
const isStep = (row: Row): row is Step => "endedAt" in row;

const maxLines = 50_000;
/** How many go at once when there are too many. */
const chunk = 5000;
const rowHeight = 18;
const around = 12;
/** How far before a linked line a running log is read from. */
const beforeLinkMs = 60_000;

/** Minutes back of a running log. */
const ranges = [
  ["", "Newest 1,000 lines"],
  ["15", "Last 15 minutes"],
  ["60", "Last hour"],
  ["360", "Last 6 hours"],
  ["1440", "Last 24 hours"],
  ["10080", "Last 7 days"],
  ["from", "From a time …"],
] as const;

/** The line that the page's address names: its `seq`. */
const linked = (): number => Number(/^#L(\d{1,16})$/.exec(location.hash)?.[1] ?? 0);

const make = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  classes: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] => {
  const element = document.createElement(tag);
  element.className = classes;
  element.append(...children);
  return element;
};

const button = (element: HTMLButtonElement, act: () => void, title: string): HTMLButtonElement => {
  element.type = "button";
  element.title = title;
  element.addEventListener("click", act);
  return element;
};

/** The index of the last entry that is at most `value`, in ascending numbers. */
function lastAtMost(numbers: readonly number[], value: number): number {
  let [low, high] = [0, numbers.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((numbers[middle] ?? 0) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * A log: `data-stream` is the API's address of it, `data-kind` `recorded` or `running`, `data-name` the file to save it as. Only the
 * rows that are seen are in the document, so 50,000 lines scroll like fifty. Text becomes text nodes.
 */
class Log extends HTMLElement {
  #lines: Line[] = [];
  /** Lines that came while paused. */
  #held: Line[] = [];
  #incoming: Line[] = [];
  /** The lines that pass the filters and are not folded, and where each begins, in rows. */
  #shown: Row[] = [];
  /** How many pass the filters. */
  #count = 0;
  #steps: Step[] = [];
  /** The step whose head was shown last. */
  #headed: Step | null = null;
  /** The newest whose lines are shown: later ones may be held back. */
  #newest: Step | null = null;
  #unfoldsAll = false;
  /** In milliseconds; null where the deployment was not over when the page was made. */
  #took: Partial<Record<DeploymentStep, number | null>> = {};
  /** Something is searched for: nothing is folded, as with a filter. */
  #isSearching = false;
  #tops: number[] = [];
  #rows = 0;
  #columns = 120;
  #isFollowing = true;
  #isPaused = false;
  #isOver = false;
  /** Not all lines are of today, so each tells its day. */
  #isDated = false;
  #wraps = matchMedia("(max-width: 700px)").matches;
  #unseen = 0;
  #dropped = 0;
  #hits: number[] = [];
  #hit = -1;
  #failures = 0;
  #stream: EventSource | undefined;
  /** Opens a refused stream again. */
  #retry: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #last: Line | undefined;
  /** The linked line; 0: none. */
  #mark = linked();
  /** The linked line was shown, so scrolling is the reader's. */
  #isAtMark = false;
  /** All that is kept is read, from a time that the reader chose. */
  #from: string | null = null;
  readonly #replicas = new Set<number>();

  readonly #view = make("div", "log-view");
  readonly #space = make("div", "log-space");
  readonly #window = make("div", "log-window");
  readonly #state = make("span", "log-state soft");
  /** For screen readers: without the count, which changes with every line. */
  readonly #told = make("span", "hidden-text");
  #mode = "";
  readonly #fresh = make("button", "log-fresh");
  readonly #follow = make("button", "", "Follow");
  readonly #pause = make("button", "", "Pause");
  readonly #wrap = make("button", "", "Wrap");
  readonly #search = make("input", "log-search");
  readonly #found = make("span", "soft log-found");
  readonly #filter = make("select", "");
  readonly #replica = make("select", "");
  readonly #range = make("select", "");
  readonly #since = make("input", "");
  readonly #folds = make("button", "", "Unfold all");
  readonly #full = make("button", "", "Full screen");

  connectedCallback(): void {
    this.#build();
    if (this.#mark > 0) this.#isFollowing = false;
    // The number of a running log's line is its time in microseconds.
    if (this.#mark > 0 && this.#isRunning)
      this.#from = new Date(this.#mark / 1000 - beforeLinkMs).toISOString();
    this.#open();
    addEventListener("hashchange", this.#follows);
    document.addEventListener("berth:read", this.#learns);
    new ResizeObserver(() => this.#measure()).observe(this.#view);
  }
  disconnectedCallback(): void {
    this.#close();
    this.#isOver = true;
    removeEventListener("hashchange", this.#follows);
    document.removeEventListener("berth:read", this.#learns);
    cancelAnimationFrame(this.#frame);
  }
  get #isRunning(): boolean {
    return this.dataset["kind"] === "running";
  }
  /** A link to another line of this page. */
  readonly #follows = (): void => {
    this.#mark = linked();
    this.#isAtMark = false;
    this.#toMark();
  };
  /** What the steps took is known only at the end. */
  readonly #learns = (event: Event): void => {
    const newer = (event as CustomEvent<Document>).detail.querySelector<HTMLElement>("berth-log");
    this.#took = tookOf(newer ?? this);
    this.#schedule();
  };

  #build(): void {
    this.#took = tookOf(this);
    this.#search.type = "search";
    this.#search.placeholder = "Search";
    this.#search.setAttribute("aria-label", "Search in the log");
    this.#search.addEventListener("input", () => this.#find());
    this.#search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#go(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.#view.focus();
    });
    this.#filter.setAttribute("aria-label", "Lines to show");
    for (const [value, label] of [
      ["", "All lines"],
      ["error", "Errors"],
      ["warn", "Warnings and errors"],
      ["stdout", "Standard output"],
      ["stderr", "Standard error"],
      ["system", "Berth's lines"],
      ["found", "Lines found"],
    ] as const)
      this.#filter.append(new Option(label, value));
    this.#filter.addEventListener("change", () => this.#sift());
    this.#replica.setAttribute("aria-label", "Container");
    this.#replica.append(new Option("All containers", ""));
    this.#replica.hidden = true;
    this.#replica.addEventListener("change", () => this.#sift());
    for (const [value, label] of ranges) this.#range.append(new Option(label, value));
    this.#range.setAttribute("aria-label", "From when");
    this.#range.hidden = !this.#isRunning;
    this.#since.type = "datetime-local";
    this.#since.hidden = true;
    this.#since.setAttribute("aria-label", "From this time on, in your time zone");
    this.#range.addEventListener("change", () => {
      this.#since.hidden = this.#range.value !== "from";
      if (this.#since.hidden) this.#read(this.#range.value);
      else this.#since.focus();
    });
    this.#since.addEventListener("change", () => {
      const at = new Date(this.#since.value);
      if (!Number.isNaN(at.getTime())) this.#readFrom(at.toISOString());
    });
    this.#wrap.setAttribute("aria-pressed", String(this.#wraps));
    this.#folds.setAttribute("aria-pressed", "false");
    this.#folds.hidden = this.dataset["took"] === undefined;
    this.#full.hidden = !document.fullscreenEnabled;
    this.#pause.setAttribute("aria-pressed", "false");
    this.#found.setAttribute("role", "status");
    this.#told.setAttribute("role", "status");
    const tools = make(
      "div",
      "log-tools",
      this.#search,
      this.#found,
      this.#filter,
      this.#replica,
      this.#range,
      this.#since,
      button(this.#follow, () => this.#followNewest(), "Stay at the newest line (f)"),
      button(this.#pause, () => this.#setPaused(!this.#isPaused), "Hold back new lines (p)"),
      button(this.#wrap, () => this.#setWrap(!this.#wraps), "Wrap long lines (w)"),
      button(this.#folds, () => this.#foldAll(), "Show the lines of every step (o)"),
      button(make("button", "", "Copy"), () => void this.#copy(), "Copy the lines that pass the filters"),
      button(make("button", "", "Download"), () => this.#download(), "Save the lines that pass the filters"),
      button(this.#full, () => void this.#toFullScreen(), "Full screen (s)"),
      this.#state,
      this.#told,
    );
    button(this.#fresh, () => this.#followNewest(), "Go to the newest line");
    this.#fresh.hidden = true;
    this.#view.tabIndex = 0;
    this.#view.setAttribute("role", "region");
    this.#view.setAttribute(
      "aria-label",
      "Log. Keys: / search, f follow, p pause, w wrap, o unfold, s full screen, g first line, G last line",
    );
    this.#view.append(this.#space);
    this.#space.append(this.#window);
    this.#view.addEventListener("scroll", () => {
      const isAtEnd = this.#view.scrollTop + this.#view.clientHeight >= this.#view.scrollHeight - rowHeight;
      if (isAtEnd !== this.#isFollowing) {
        this.#isFollowing = isAtEnd;
        if (isAtEnd) this.#unseen = 0;
        this.#say();
      }
      this.#draw();
    });
    this.#window.addEventListener("click", (event) => {
      const link = (event.target as Element).closest("a");
      if (!link) return;
      event.preventDefault();
      void this.#link(link);
    });
    this.addEventListener("keydown", (event) => this.#key(event));
    this.replaceChildren(tools, make("div", "log-frame", this.#view, this.#fresh));
    this.#measure();
    this.#say();
  }

  #key(event: KeyboardEvent): void {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      "/": () => this.#search.focus(),
      f: () => this.#followNewest(),
      p: () => this.#setPaused(!this.#isPaused),
      w: () => this.#setWrap(!this.#wraps),
      o: () => this.#foldAll(),
      s: () => void this.#toFullScreen(),
      g: () => (this.#view.scrollTop = 0),
      G: () => this.#followNewest(),
      n: () => this.#go(1),
      N: () => this.#go(-1),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // The stream

  #close(): void {
    clearTimeout(this.#retry);
    this.#stream?.close();
  }

  #open(): void {
    this.#close();
    const url = new URL(this.dataset["stream"] ?? "", location.href);
    url.searchParams.set("follow", "1");
    if (this.#isRunning) {
      const since = this.#last?.at ?? this.#from;
      if (since !== null) url.searchParams.set("since", since);
      else url.searchParams.set("tail", "1000");
    } else if (this.#last) url.searchParams.set("cursor", String(this.#last.seq));
    const stream = new EventSource(url);
    this.#stream = stream;
    stream.addEventListener("open", () => {
      this.#failures = 0;
      this.#say();
    });
    stream.addEventListener("line", (event) => this.#take((event as MessageEvent<string>).data));
    stream.addEventListener("end", () => {
      this.#isOver = true;
      stream.close();
      this.#say();
    });
    // An interrupted stream is opened again by the browser, after the line that it had last (Last-Event-ID).
    stream.addEventListener("error", () => {
      if (this.#isOver) return;
      this.#failures++;
      this.#say();
      if (stream.readyState !== EventSource.CLOSED) return;
      this.#retry = setTimeout(() => this.#open(), waitMs(this.#failures));
    });
  }

  /** Reads a running log anew: the last `minutes`, or its newest lines. */
  #read(minutes: string): void {
    this.#readFrom(minutes === "" ? null : new Date(Date.now() - Number(minutes) * 60_000).toISOString());
  }
  #readFrom(from: string | null): void {
    this.#from = from;
    this.#last = undefined;
    [this.#lines, this.#held, this.#incoming, this.#dropped, this.#unseen] = [[], [], [], 0, 0];
    [this.#steps, this.#newest] = [[], null];
    [this.#mark, this.#isFollowing, this.#isOver] = [0, true, false];
    this.#sift();
    this.#open();
  }

  #take(data: string): void {
    const { seq, at, stream, replica = 0, text, step, leftOut } = JSON.parse(data) as LogLine;
    const written = uncoloured(text);
    const { level, readable } = stream === "system" ? { level: null, readable: null } : structured(written);
    const line = {
      seq,
      at,
      stream,
      replica,
      text: readable === null ? written : uncoloured(readable),
      raw: readable ?? text,
      written,
      level,
      isGap: leftOut !== undefined,
      part: this.#partOf(step, seq, at),
    };
    this.#last = line;
    if (replica > 0 && !this.#replicas.has(replica)) {
      this.#replicas.add(replica);
      this.#replica.append(new Option(`Container ${replica}`, String(replica)));
      this.#replica.hidden = this.#replicas.size < 2;
      this.#measure();
    }
    (this.#isPaused ? this.#held : this.#incoming).push(line);
    this.#schedule();
  }

  /** Lines that came since the last frame are added at once. */
  #absorb(): void {
    const came = this.#incoming;
    if (came.length === 0) return;
    this.#incoming = [];
    const [oldest = came[0]] = this.#lines;
    if (oldest) this.#date(oldest);
    for (const line of came) this.#lines.push(line);
    const before = this.#newest;
    this.#newest = came.findLast(({ part }) => part !== null)?.part ?? before;
    const isNext = before && before !== this.#newest;
    // Nothing is folded under the eyes of somebody who reads it.
    if (isNext && !this.#isFollowing) before.isOpen ??= true;
    if (this.#lines.length > maxLines && this.#mark > 0) {
      // What was linked stays in view: the log is read no further.
      this.#close();
      this.#lines.length = maxLines;
      this.#isOver = true;
      this.#sift();
      return;
    }
    if (this.#lines.length > maxLines) {
      const count = Math.min(this.#lines.length, this.#lines.length - maxLines + chunk);
      this.#lines.splice(0, count);
      this.#dropped += count;
      this.#sift();
      return;
    }
    if (isNext) this.#sift();
    else for (const line of came) this.#append(line);
    if (this.#search.value !== "") this.#find(false);
    if (!this.#isFollowing && (this.#mark === 0 || this.#isAtMark)) this.#unseen += came.length;
    this.#toMark();
    this.#say();
  }

  /** Brings the linked line into view once it is there; if it is no longer kept, the one after it. */
  #toMark(): void {
    if (this.#mark === 0 || this.#isAtMark) return;
    const part = this.#lines.find(({ seq }) => seq >= this.#mark)?.part;
    if (part && this.#isFolded(part)) {
      part.isOpen = true;
      this.#sift();
    }
    const index = this.#shown.findIndex((row) => !isStep(row) && row.seq >= this.#mark);
    if (index < 0) return;
    this.#isAtMark = true;
    this.#isFollowing = false;
    this.#space.style.height = `${this.#rows * rowHeight}px`;
    this.#view.scrollTop = (this.#tops[index] ?? 0) * rowHeight - this.#view.clientHeight / 3;
    this.#schedule();
  }

  // What is shown

  #passes(line: Line): boolean {
    if (line.isGap) return true;
    const wanted = this.#filter.value;
    if (this.#replica.value !== "" && line.replica !== Number(this.#replica.value)) return false;
    if (wanted === "found")
      return this.#search.value === "" || line.text.toLowerCase().includes(this.#search.value.toLowerCase());
    if (wanted === "error" || wanted === "warn") return isAtLeast(line.level, wanted);
    return wanted === "" || line.stream === wanted;
  }

  #append(line: Line): void {
    if (!this.#passes(line)) return;
    const { part } = line;
    this.#count++;
    if (part) {
      if (part !== this.#headed) this.#push(part, 1);
      this.#headed = part;
      part.count++;
      if (this.#isFolded(part)) return;
    }
    this.#push(line, rowsOf(line.text, this.#wraps ? this.#columns : Infinity));
  }
  #push(row: Row, height: number): void {
    this.#shown.push(row);
    this.#tops.push(this.#rows);
    this.#rows += height;
  }

  /** The step that a new line belongs to; one that was begun again is another. */
  #partOf(step: DeploymentStep | undefined, seq: number, at: string): Step | null {
    const newest = this.#steps.at(-1);
    if (newest && this.#last?.part === newest) {
      if (newest.step === step) return newest;
      newest.endedAt = at;
    }
    if (step === undefined) return null;
    const next: Step = { step, seq, at, endedAt: null, count: 0, isOpen: null };
    this.#steps.push(next);
    return next;
  }
  #isFolded(part: Step): boolean {
    const isSifted = this.#isSearching || this.#filter.value !== "" || this.#replica.value !== "";
    return !isSifted && !(part.isOpen ?? (this.#unfoldsAll || part === this.#newest));
  }
  #fold(part: Step): void {
    part.isOpen = this.#isFolded(part);
    this.#isFollowing = false;
    this.#sift();
  }
  #foldAll(): void {
    this.#unfoldsAll = !this.#unfoldsAll;
    for (const part of this.#steps) part.isOpen = null;
    this.#folds.setAttribute("aria-pressed", String(this.#unfoldsAll));
    this.#isFollowing = false;
    this.#sift();
  }

  /** All of it again, after a filter or the width has changed. */
  #sift(): void {
    const first = this.#shown[lastAtMost(this.#tops, Math.floor(this.#view.scrollTop / rowHeight))];
    [this.#shown, this.#tops, this.#rows, this.#count, this.#headed] = [[], [], 0, 0, null];
    for (const part of this.#steps) part.count = 0;
    for (const line of this.#lines) this.#append(line);
    this.#find(false);
    const at = first && !this.#isFollowing ? this.#shown.indexOf(first) : -1;
    this.#space.style.height = `${this.#rows * rowHeight}px`;
    if (at >= 0) this.#view.scrollTop = (this.#tops[at] ?? 0) * rowHeight;
    this.#say();
    this.#schedule();
  }

  #date({ at }: Line): void {
    const isDated = localDay(at) !== localDay(new Date().toISOString());
    if (isDated === this.#isDated) return;
    this.#isDated = isDated;
    this.classList.toggle("dated", isDated);
    this.#measure();
  }

  #measure(): void {
    const probe = make("span", "log-probe", "0".repeat(50));
    this.#window.append(probe);
    const width = probe.getBoundingClientRect().width / 50;
    probe.remove();
    // Time, container and padding are in characters, as in the style sheet.
    const taken = (this.#isDated ? 18 : 11) + (this.#replicas.size > 1 ? 4 : 0) + 2;
    this.classList.toggle("replicas", this.#replicas.size > 1);
    const columns = width > 0 ? Math.max(20, Math.floor(this.#view.clientWidth / width) - taken) : 120;
    if (columns !== this.#columns) {
      this.#columns = columns;
      this.#space.style.setProperty("--columns", String(columns));
      if (this.#wraps) this.#sift();
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#absorb();
      this.#space.style.height = `${this.#rows * rowHeight}px`;
      if (this.#isFollowing) this.#view.scrollTop = this.#view.scrollHeight;
      this.#draw();
    });
  }

  #draw(): void {
    this.classList.toggle("wraps", this.#wraps);
    const top = Math.floor(this.#view.scrollTop / rowHeight);
    const from = Math.max(0, lastAtMost(this.#tops, top) - around);
    const to = Math.min(
      this.#shown.length,
      lastAtMost(this.#tops, top + Math.ceil(this.#view.clientHeight / rowHeight)) + around,
    );
    const focused = document.activeElement?.closest<HTMLElement>(".log-step")?.dataset["step"];
    const rows: HTMLElement[] = [];
    for (let index = from; index < to; index++) {
      const row = this.#shown[index];
      if (row) rows.push(isStep(row) ? this.#headOf(row) : this.#rowOf(row, index));
    }
    this.#window.style.transform = `translateY(${(this.#tops[from] ?? 0) * rowHeight}px)`;
    this.#window.replaceChildren(...rows);
    if (focused !== undefined)
      this.#window.querySelector<HTMLElement>(`[data-step="${focused}"]`)?.focus({ preventScroll: true });
  }

  #headOf(part: Step): HTMLElement {
    const isOpen = !this.#isFolded(part);
    const endedAt = part.endedAt ?? (this.#isOver ? this.#last?.at : undefined);
    const betweenMs = endedAt === undefined ? null : Date.parse(endedAt) - Date.parse(part.at);
    const tookMs = this.#took[part.step] ?? betweenMs;
    const head = make("button", "log-step");
    head.dataset["step"] = String(this.#steps.indexOf(part));
    head.setAttribute("aria-expanded", String(isOpen));
    head.append(
      make("b", "", stepNames[part.step]),
      make(
        "span",
        "",
        `${tookMs === null ? "" : `${duration(tookMs)} · `}${part.count.toLocaleString()} ${part.count === 1 ? "line" : "lines"}`,
      ),
    );
    return make(
      "div",
      "",
      button(head, () => this.#fold(part), isOpen ? "Fold" : "Unfold"),
    );
  }

  #rowOf(line: Line, index: number): HTMLElement {
    const moment = localTime(line.at);
    const clock = moment.slice(-8);
    // Without the year: 25 Dec 15:04:05.
    const time = make("time", "", this.#isDated ? `${moment.slice(0, -15)} ${clock}` : clock);
    time.dateTime = line.at;
    time.title = `${moment}: link to this line`;
    const link = make("a", "", time);
    link.href = `#L${line.seq}`;
    link.tabIndex = -1;
    const text = make("span", "text");
    const searched = this.#search.value.toLowerCase();
    if (searched === "" || !line.text.toLowerCase().includes(searched))
      for (const { text: part, classes } of runsOf(line.raw))
        text.append(classes === "" ? part : make("span", classes, part));
    else {
      const lower = line.text.toLowerCase();
      let at = 0;
      for (let found = lower.indexOf(searched); found >= 0; found = lower.indexOf(searched, at)) {
        text.append(
          line.text.slice(at, found),
          make("mark", "", line.text.slice(found, found + searched.length)),
        );
        at = found + searched.length;
      }
      text.append(line.text.slice(at));
    }
    const row = make("div", `row-${line.stream}${line.level === "error" ? " row-error" : ""}`, link);
    if (this.#replicas.size > 1)
      row.append(make("span", "replica", line.replica > 0 ? `#${line.replica}` : ""));
    row.append(text);
    row.style.height = `${((this.#tops[index + 1] ?? this.#rows) - (this.#tops[index] ?? 0)) * rowHeight}px`;
    if (this.#hits[this.#hit] === index || line.seq === this.#mark) row.classList.add("hit");
    return row;
  }

  #find(jumps = true): void {
    const searched = this.#search.value.toLowerCase();
    if (this.#isSearching !== (searched !== "")) {
      this.#isSearching = searched !== "";
      if (this.#steps.length > 0) this.#sift();
    }
    if (this.#filter.value === "found" && jumps) {
      this.#sift();
      return;
    }
    this.#hits = [];
    if (searched !== "")
      for (const [index, row] of this.#shown.entries())
        if (!isStep(row) && row.text.toLowerCase().includes(searched)) this.#hits.push(index);
    if (jumps) {
      this.#hit = -1;
      if (this.#hits.length > 0) this.#go(-1);
    } else this.#hit = Math.min(this.#hit, this.#hits.length - 1);
    this.#say();
    this.#schedule();
  }

  /** To the next line found, or the one before; from none to the newest. */
  #go(step: 1 | -1): void {
    const count = this.#hits.length;
    if (count === 0) return;
    this.#hit = this.#hit < 0 ? count - 1 : (this.#hit + step + count) % count;
    const top = (this.#tops[this.#hits[this.#hit] ?? 0] ?? 0) * rowHeight;
    const height = this.#view.clientHeight;
    this.#isFollowing = false;
    if (top < this.#view.scrollTop || top > this.#view.scrollTop + height - rowHeight)
      this.#view.scrollTop = Math.max(0, top - height / 2);
    this.#say();
    this.#draw();
  }

  #followNewest(): void {
    if (this.#mark > 0 && this.#isOver && this.#isRunning) {
      history.replaceState(null, "", location.pathname + location.search);
      this.#readFrom(null);
      return;
    }
    this.#isFollowing = true;
    this.#unseen = 0;
    if (this.#isPaused) this.#setPaused(false);
    this.#say();
    this.#schedule();
  }

  #setPaused(paused: boolean): void {
    this.#isPaused = paused;
    if (!paused) {
      this.#incoming.push(...this.#held.splice(0));
      this.#schedule();
    }
    this.#pause.setAttribute("aria-pressed", String(paused));
    this.#say();
  }

  #setWrap(wraps: boolean): void {
    this.#wraps = wraps;
    this.#wrap.setAttribute("aria-pressed", String(wraps));
    this.#sift();
  }

  #say(): void {
    const fresh = this.#isPaused ? this.#held.length : this.#unseen;
    this.#fresh.hidden = fresh === 0;
    this.#fresh.textContent = `${fresh} new ↓`;
    this.#follow.setAttribute("aria-pressed", String(this.#isFollowing && !this.#isPaused));
    const count = this.#hits.length;
    const searched = this.#search.value !== "";
    this.#found.textContent = !searched
      ? ""
      : count === 0
        ? "nothing found"
        : this.#hit < 0
          ? `${count} found`
          : `${this.#hit + 1} of ${count}`;
    const older = this.#dropped > 0 ? ` · ${this.#dropped.toLocaleString()} older ones omitted` : "";
    const lines = `${this.#counted()}${older}`;
    const isGone = this.#isOver && this.#lines.length + this.#incoming.length === 0;
    const mode = isGone
      ? "The log is no longer kept."
      : this.#isOver
        ? this.#isRunning && this.#mark > 0
          ? "reading stopped"
          : "complete"
        : this.#failures > 0
          ? "reconnecting …"
          : this.#isPaused
            ? "paused"
            : "live";
    this.#state.textContent = isGone ? mode : `${lines} · ${mode}`;
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.#told.textContent = isGone ? mode : `Log: ${mode}`;
  }

  /** What was done, until the log goes on. */
  #tell(text: string): void {
    this.#state.textContent = this.#told.textContent = text;
  }

  // What is taken away

  /** The page's address names the line, to be sent to somebody. */
  async #link(link: HTMLAnchorElement): Promise<void> {
    history.replaceState(null, "", link.href);
    [this.#mark, this.#isAtMark] = [linked(), true];
    this.#draw();
    await navigator.clipboard.writeText(link.href);
    this.#tell("The link to this line is copied.");
  }

  async #toFullScreen(): Promise<void> {
    if (document.fullscreenElement === this) await document.exitFullscreen();
    else await this.requestFullscreen();
    this.#view.focus();
  }

  #text(): string {
    return this.#lines
      .filter((line) => this.#passes(line))
      .map(({ at, replica, written }) => `${at} ${this.#replicas.size > 1 ? `#${replica} ` : ""}${written}\n`)
      .join("");
  }

  #counted(): string {
    return `${this.#count.toLocaleString()} ${this.#count === 1 ? "line" : "lines"}`;
  }

  async #copy(): Promise<void> {
    await navigator.clipboard.writeText(this.#text());
    this.#tell(`Copied ${this.#counted()}.`);
  }

  #download(): void {
    const link = make("a", "");
    link.href = URL.createObjectURL(new Blob([this.#text()], { type: "text/plain" }));
    link.download = `${this.dataset["name"] ?? "log"}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
}

if (!customElements.get("berth-log")) customElements.define("berth-log", Log);
