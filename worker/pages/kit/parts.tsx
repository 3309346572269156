import { tryGetContext } from "hono/context-storage";
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import { ago } from "../../../protocol/ago.ts";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import { day } from "../../../protocol/days.ts";
import type { AppEnv } from "../../app-env.ts";
import { stopsAt } from "../../domain/terms.ts";
import type { Tone } from "./words.ts";

/** A state: a dot and a word, since colour alone says nothing to some. */
export const Status = ({ tone, label }: { tone: Tone; label: string }) => (
  <span class={`dot ${tone}`}>{label}</span>
);

const presentTime = (): Date => tryGetContext<AppEnv>()?.get("ctx")?.now() ?? new Date();

/** A time to the minute where no script makes it the reader's. */
export const utc = (at: string): string => `${at.slice(0, 16).replace("T", " ")} UTC`;

/** The exact time in UTC without a script; how long ago, with the local time as its title, with one. */
export const Time = ({ at }: { at: string }) => (
  <time datetime={at} data-relative data-titled>
    <span class="exact">{utc(at)}</span>
    <span class="ago">{ago(at, presentTime().getTime())}</span>
  </time>
);

/** A time that people plan or choose by, to the minute: in UTC without a script, in the reader's own zone with one. */
export const LocalTime = ({ at }: { at: string }) => (
  <time datetime={at} data-local>
    {utc(at)}
  </time>
);

/** A day in UTC, as mails and invoices have it; with a script, with the local time as its title. */
export const Day = ({ at }: { at: string }) => (
  <time datetime={at} data-titled>
    {day(at)}
  </time>
);

/** An unpaid invoice of a term that has ended. */
export const isOverdue = ({ kind, dueAt }: Pick<Invoice, "kind" | "dueAt">): boolean =>
  kind === "renewal" && new Date(dueAt) <= presentTime();

/** Until when an unpaid invoice can be paid, and of a renewal when it is due, or what is stopped and when. */
export const Due = ({ invoice }: { invoice: Pick<Invoice, "kind" | "dueAt" | "createdAt"> }) => {
  const { kind, dueAt, createdAt } = invoice;
  const stops = stopsAt(new Date(dueAt), new Date(createdAt));
  if (isOverdue(invoice))
    return (
      <span class="bad">
        overdue
        {stops > presentTime() && (
          <>
            : will be stopped on <Day at={stops.toISOString()} />
          </>
        )}
      </span>
    );
  return (
    <>
      {kind === "renewal" ? "due" : "payable until"} <Day at={dueAt} />
    </>
  );
};

/** A text as the value of an attribute, in double quotes; parsers would turn CR into LF. */
const attribute = (text: string) =>
  raw(
    text
      .replaceAll("&", "&amp;")
      .replaceAll('"', "&quot;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll("\r", "&#13;"),
  );

/** A button that copies; it needs a script, so the text itself stands elsewhere. */
export const Copy = ({ text, label = "Copy", of }: { text: string; label?: string; of?: string }) => (
  <button
    class="needs-script"
    type="button"
    data-copy={attribute(text)}
    {...(of !== undefined && { "aria-label": `${label}: ${of}` })}
  >
    {label}
  </button>
);

/** Code or commands with a button to copy them. */
export const Code = ({ text, of }: { text: string; of: string }) => (
  <>
    <pre tabindex={0}>{text}</pre>
    <Copy text={text} of={of} />
  </>
);

/** A value with a button to copy it. */
export const Copied = ({ text, of }: { text: string; of: string }) => (
  <span class="copied">
    <code>{text}</code>
    <Copy text={text} of={of} />
  </span>
);

/** `live`: reloaded when something that the page is about changes; needs an id that is unique on the page. */
export const Card = ({
  title,
  end,
  id,
  live = false,
  tone,
  children,
}: {
  title?: Child;
  /** Links or buttons beside the title. */
  end?: Child;
  id?: string;
  live?: boolean;
  tone?: "fail";
  children: Child;
}) => (
  <section class={tone === undefined ? "card" : `card ${tone}`} id={id} {...(live && { "data-live": "" })}>
    {title !== undefined && (
      <h2>
        {title}
        {end !== undefined && <span class="row">{end}</span>}
      </h2>
    )}
    {children}
  </section>
);

/** A part of the page outside a card that is reloaded when something that the page is about changes. */
export const Live = ({
  id,
  isPolled = false,
  children,
}: {
  id: string;
  /** What it shows changes without an event of the account, so the page asks again every few seconds. */
  isPolled?: boolean;
  children: Child;
}) => (
  <div id={id} data-live="" {...(isPolled && { "data-polled": "" })}>
    {children}
  </div>
);

/** A notice that needs a decision or explains a state. */
export const Callout = ({
  tone,
  title,
  children,
}: {
  tone: "good" | "busy" | "warn" | "bad" | "plain";
  title?: string;
  children: Child;
}) => (
  <section class={`callout ${tone}`}>
    {title !== undefined && <h2 class={tone === "plain" ? "" : tone}>{title}</h2>}
    {children}
  </section>
);

/** What is used of a limit. `limit` null: there is none. */
export const Meter = ({
  label,
  used,
  limit,
  said,
  bigger,
}: {
  label: string;
  used: number;
  limit: number | null;
  said: string;
  /** Where a bigger plan is chosen, if there is one: offered as the limit comes near. */
  bigger?: string | undefined;
}) => {
  const part = limit === null || limit <= 0 ? 0 : used / limit;
  return (
    <div class="meter">
      <div>
        <span>{label}</span>
        <span>{said}</span>
      </div>
      {limit !== null && (
        <progress
          class={part >= 0.95 ? "bad" : part >= 0.8 ? "warn" : ""}
          aria-label={label}
          max={String(limit)}
          value={String(Math.min(used, limit))}
        />
      )}
      {bigger !== undefined && part >= 0.8 && (
        <a class="button" href={bigger}>
          Larger plan
        </a>
      )}
    </div>
  );
};

/** What stands where a list would be: a sentence and the next step. */
export const Empty = ({ title, text, children }: { title: string; text: string; children?: Child }) => (
  <div class="empty">
    <h2>{title}</h2>
    <p>{text}</p>
    <div class="buttons">{children}</div>
  </div>
);

type Tab = { href: string; label: string };
/** Sub-pages of one resource, as links. */
export const Tabs = ({ label, tabs, current }: { label: string; tabs: readonly Tab[]; current: string }) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map((tab) => (
      <a href={tab.href} {...(tab.href === current && { "aria-current": "page" as const })}>
        {tab.label}
      </a>
    ))}
  </nav>
);

type Column = string | readonly [label: Child, classes: "end" | "number" | "number wide-only" | "wide-only"];

/** The head of a table. */
export const Head = ({ columns }: { columns: readonly Column[] }) => (
  <thead>
    <tr>
      {columns.map((column) => {
        const [label, classes] = typeof column === "string" ? [column] : column;
        return (
          <th scope="col" class={classes}>
            {label}
          </th>
        );
      })}
    </tr>
  </thead>
);

/** Links through the pages of a list. */
export const Pager = ({
  path,
  next,
  by = "cursor",
  label,
}: {
  path: string;
  next: string | null;
  /** The parameter that says where the next page begins. */
  by?: "cursor" | "from";
  label: string;
}) =>
  next === null ? null : (
    <p class="links">
      <a href={`${path}${path.includes("?") ? "&" : "?"}${by}=${encodeURIComponent(next)}`}>{label}</a>
    </p>
  );

/** The heading of a page with what can be done on it. */
export const Heading = ({
  title,
  status,
  below,
  children,
}: {
  title: string;
  status?: Child;
  below?: Child;
  children?: Child;
}) => (
  <div class="head">
    <div>
      <h1>
        {title} {status}
      </h1>
      {below !== undefined && <div class="soft">{below}</div>}
    </div>
    {children !== undefined && <div class="buttons">{children}</div>}
  </div>
);
