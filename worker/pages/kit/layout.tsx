import { tryGetContext } from "hono/context-storage";
import type { Child } from "hono/jsx";
import type { AppEnv } from "../../app-env.ts";
import { configOf } from "../../config.ts";
import { Brand, brandName, brandSheetAddress, LegalLinks } from "./brand.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { isOverdue } from "./parts.tsx";
import { Said } from "./said.tsx";
import { suspendedFor } from "./viewer.ts";
import type { Word } from "./words.ts";

const sections = [
  "home",
  "sites",
  "databases",
  "activity",
  "billing",
  "settings",
  "docs",
  "operator",
] as const;
type Section = (typeof sections)[number];

const rail: { section: Section; href: string; label: string; icon: IconName }[] = [
  { section: "home", href: "/", label: "Home", icon: "home" },
  { section: "sites", href: "/sites", label: "Sites", icon: "sites" },
  { section: "databases", href: "/databases", label: "Databases", icon: "databases" },
  { section: "activity", href: "/activity", label: "Activity", icon: "activity" },
  { section: "billing", href: "/billing", label: "Billing", icon: "billing" },
  { section: "settings", href: "/account", label: "Settings", icon: "settings" },
  { section: "docs", href: "/docs", label: "Docs", icon: "docs" },
];
/** The rest is behind "More". */
const onPhones: Section[] = ["home", "sites", "databases", "billing"];

type Crumb = { label: string; href?: string };
export type Frame = {
  title: string;
  /** The current entry of the navigation. */
  section?: Section | undefined;
  /** Where the page is; its title alone if empty. */
  crumbs?: Crumb[];
  /** Ids whose changes reload what is live on the page; "account": any change. */
  about?: readonly string[];
  /** Of what the page is about: the icon of the browser's tab has its colour, and the title says it unless all is well. */
  state?: Word;
  /** Programs of the page beside `main`: names in web/islands. */
  islands?: readonly string[];
};

/** The request's context; undefined only where a page is rendered outside a request (tests). */
const request = () => tryGetContext<AppEnv>();
const takesTestPayments = (): boolean => {
  const c = request();
  return c !== undefined && configOf(c.env).PAYMENTS === "test";
};
/** Based on the cookie alone, which is all that public pages check. */
const hasSession = (): boolean => request()?.get("hasSession") ?? false;

/** The address of an asset with its hash; its plain name where nothing was built (tests). */
const asset = (name: string): string => `/assets/${request()?.get("assets")?.[name] ?? name}`;

const Head = ({
  title,
  crumbs,
  state,
  islands = [],
}: Pick<Frame, "title" | "crumbs" | "state" | "islands">) => (
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="robots" content="noindex" />
    <title>
      {/* The second crumb is the site or database whose page it is. */}
      {[state?.tone === "good" ? undefined : state?.label, title, crumbs?.[1]?.label, brandName()]
        .filter(Boolean)
        .join(" · ")}
    </title>
    <link
      rel="icon"
      href={asset(state === undefined ? "icon.svg" : `icon-${state.tone}.svg`)}
      type="image/svg+xml"
      {...(state !== undefined && { "data-state": state.tone })}
    />
    <link
      rel="preload"
      as="font"
      type="font/woff2"
      crossorigin="anonymous"
      href={asset("inter-latin-wght-normal.woff2")}
    />
    <link rel="stylesheet" href={asset("style.css")} />
    {brandSheetAddress() !== null && <link rel="stylesheet" href={brandSheetAddress() ?? ""} />}
    {["main.js", ...islands.map((name) => `${name}.js`)].map((name) => (
      <script type="module" src={asset(name)} />
    ))}
  </head>
);

const Footer = () => (
  <footer>
    {takesTestPayments() && (
      <span class="test-payments">
        <strong>Test payments</strong>: this installation uses the embedded test processor. No money moves.
      </span>
    )}
    <span>Hosting that people own.</span>
    <LegalLinks />
  </footer>
);

const Link = ({
  section,
  href,
  label,
  icon,
  current,
}: (typeof rail)[number] & { current?: Section | undefined }) => (
  <a href={href} title={label} {...(section === current && { "aria-current": "page" as const })}>
    <Icon name={icon} />
    <span>{label}</span>
  </a>
);

const isOperator = (): boolean => request()?.get("viewer")?.role === "operator";

const Rail = ({ section }: Pick<Frame, "section">) => (
  <nav class="rail" aria-label="Main">
    <Brand />
    {rail.map((entry) => (
      <Link {...entry} current={section} />
    ))}
    {isOperator() && (
      <>
        <hr />
        <Link section="operator" href="/operator" label="Operator" icon="operator" current={section} />
      </>
    )}
  </nav>
);

/** What has no place of its own at the foot of a phone. */
const More = ({ section }: Pick<Frame, "section">) => {
  const entries = rail.filter((entry) => !onPhones.includes(entry.section));
  const isHere = section !== undefined && !onPhones.includes(section);
  return (
    <details class="menu">
      <summary class={isHere ? "here" : ""}>
        <Icon name="more" />
        <span>More</span>
      </summary>
      <div>
        {entries.map((entry) => (
          <Link {...entry} current={section} />
        ))}
        {isOperator() && (
          <Link section="operator" href="/operator" label="Operator" icon="operator" current={section} />
        )}
      </div>
    </details>
  );
};

/** From a site's page to the same page of another site, and so for databases; nothing where there is no other. */
const Switcher = () => {
  const path = request()?.req.path ?? "";
  const [, list = "", id = "", tab = ""] =
    /^\/(sites|databases)\/((?:site|db)_[0-9a-z]+)(?:\/([a-z]+))?/.exec(path) ?? [];
  const terms = request()?.get("viewer")?.terms ?? [];
  const others = terms
    .filter((term) => `${term.kind}s` === list && term.id !== id)
    .toSorted((a, b) => a.name.localeCompare(b.name));
  if (id === "" || others.length === 0) return null;
  return (
    <details class="menu switcher">
      <summary>
        <Icon name="switch" />
        <span class="hidden-text">{list === "sites" ? "Another site" : "Another database"}</span>
      </summary>
      <div>
        {others.slice(0, 50).map((term) => (
          <a href={`/${list}/${term.id}${tab === "" ? "" : `/${tab}`}`}>{term.name}</a>
        ))}
      </div>
    </details>
  );
};

/** What the assistant may still use; live, like every balance. */
const Balance = ({ id }: { id: string }) => {
  const balance = request()?.get("viewer")?.credits.balance;
  return (
    <a id={id} class="balance" data-live="" href="/billing#credits">
      {balance === undefined
        ? "Credits"
        : `${balance.toLocaleString("en-US")} ${balance === 1 ? "credit" : "credits"}`}
    </a>
  );
};

const Top = ({ title, crumbs = [] }: Pick<Frame, "title" | "crumbs">) => {
  const viewer = request()?.get("viewer");
  const keys = /Mac|iPhone|iPad/.test(request()?.req.header("User-Agent") ?? "") ? "⌘K" : "Ctrl K";
  return (
    <header class="top">
      <nav class="crumbs" aria-label="Breadcrumb">
        {crumbs.map(({ label, href }) => (
          <>
            {href === undefined ? label : <a href={href}>{label}</a>} <span aria-hidden="true">/</span>
          </>
        ))}
        <b>{title}</b>
        <Switcher />
      </nav>
      <div class="end">
        <button
          class="search-button needs-script"
          type="button"
          data-palette={asset("palette.js")}
          aria-label={`Search or jump to … ${keys}`}
        >
          <Icon name="search" />
          <span>Search or jump to …</span>
          <kbd>{keys}</kbd>
        </button>
        <Balance id="balance" />
        <a class="button" href="/assistant" data-assistant>
          Ask
        </a>
        <details class="menu">
          <summary>
            <span class="avatar" aria-hidden="true">
              {(viewer?.email ?? "?").slice(0, 2)}
            </span>
            <span class="hidden-text">Your account</span>
          </summary>
          <div>
            {viewer && <p class="who">{viewer.email}</p>}
            <Balance id="menu-balance" />
            <a href="/account">Settings</a>
            <form method="post" action="/theme">
              <button type="submit" name="theme" value="light">
                Light
              </button>
              <button type="submit" name="theme" value="dark">
                Dark
              </button>
              <button type="submit" name="theme" value="system">
                Match the system
              </button>
            </form>
            <button class="needs-script" type="button" data-shortcuts={asset("palette.js")}>
              Keyboard shortcuts
            </button>
            <form method="post" action="/sign-out">
              <button type="submit">Sign out</button>
            </form>
          </div>
        </details>
      </div>
    </header>
  );
};

/** What needs the person's attention wherever they are. */
const Banners = () => {
  const viewer = request()?.get("viewer");
  const renewals = viewer?.payment.unpaid.filter(({ kind }) => kind === "renewal") ?? [];
  const overdue = renewals.filter(isOverdue).length;
  const unpaid = overdue || renewals.length;
  const isAnothers = request()?.get("ctx")?.actor.type === "viewer";
  const reason = suspendedFor();
  return (
    <div id="banners">
      {viewer && isAnothers && (
        <div class="banner" role="status">
          You see the dashboard of {viewer.email} as they do, and cannot change anything.
          <form method="post" action="/view-as/end">
            <button type="submit">Back to your own</button>
          </form>
        </div>
      )}
      {reason !== null && (
        <div class="banner" role="status">
          <b>Your account is suspended: {reason}</b>
          <span>
            Your sites and databases are stopped, and their data is kept. You can see everything and pay
            invoices. Ask the operator of this service to have it released.
          </span>
        </div>
      )}
      {viewer && !viewer.emailVerified && (
        <div class="banner" role="status">
          Confirm {viewer.email}: open the link in our email.
          <form method="post" action="/confirm-email">
            <button type="submit">Send it again</button>
          </form>
        </div>
      )}
      {unpaid > 0 && (
        <div class="banner" role="status">
          {unpaid === 1 ? "An invoice is" : `${unpaid} invoices are`} {overdue > 0 ? "overdue" : "due"}.{" "}
          <a href="/billing">
            {reason === null && viewer?.terms.some(({ status }) => status === "SUSPENDED")
              ? "Pay to start again"
              : "Pay to keep running"}
          </a>
        </div>
      )}
    </div>
  );
};

const theme = (): object => {
  const chosen = /(?:^|; )theme=(light|dark)(?:;|$)/.exec(request()?.req.header("Cookie") ?? "")?.[1];
  return chosen === undefined ? {} : { "data-theme": chosen };
};

/** A page of a signed-in person. */
export const AppPage = ({ children, ...frame }: Frame & { children: Child }) => (
  <html lang="en" {...theme()}>
    <Head {...frame} />
    <body class="app" data-events="/api/v1/events">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Rail section={frame.section} />
      <div class="stage">
        <Top {...frame} />
        <Banners />
        <main id="main" data-about={(frame.about ?? []).join(" ")}>
          <Said />
          {children}
        </main>
        <Footer />
      </div>
      <nav class="phone-tabs" aria-label="Main, on phones">
        {rail
          .filter(({ section }) => onPhones.includes(section))
          .map((entry) => (
            <Link {...entry} current={frame.section} />
          ))}
        <More section={frame.section} />
      </nav>
    </body>
  </html>
);

/** The layout of pages that need no session. A person with one keeps the navigation. */
export const Layout = ({
  signedIn = hasSession(),
  wide = false,
  bare = false,
  children,
  ...frame
}: Frame & { signedIn?: boolean; wide?: boolean; bare?: boolean; children: Child }) =>
  signedIn ? (
    <AppPage {...frame}>{children}</AppPage>
  ) : (
    <html lang="en" {...theme()}>
      <Head {...frame} />
      <body class="plain">
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header>
          <Brand />
          <nav aria-label="Main">
            <a href="/docs">Docs</a>
            <a href="/sign-in">Sign in</a>
          </nav>
        </header>
        <main id="main" class={bare ? "bare" : wide ? "wide" : ""}>
          <Said />
          {children}
        </main>
        <Footer />
      </body>
    </html>
  );
