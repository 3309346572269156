import { tryGetContext } from "hono/context-storage";
import type { Child } from "hono/jsx";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";

const style = `
:root { color-scheme: light dark; --ink: #16202c; --soft: #5b6878; --line: #dfe5ec; --paper: #fff; --ground: #f3f6f9; --sea: #0b6e8f; --sea-ink: #fff; --good: #17734a; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf3; --soft: #98a6b6; --line: #2b3745; --paper: #17202b; --ground: #0f161e; --sea: #3aa6c9; --sea-ink: #06222c; --good: #5cc795; --warn: #e0b155; } }
* { box-sizing: border-box; margin: 0 }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); min-height: 100vh; display: grid; grid-template: auto 1fr auto / minmax(0, 1fr) }
header { display: flex; gap: 1.25rem; align-items: baseline } header form { margin-left: auto }
header, footer { padding: 1.25rem 1.5rem; color: var(--soft); font-size: .9rem }
header nav a { margin-right: 1rem; color: var(--soft); text-decoration: none } header > a { font-weight: 700; font-size: 1.1rem; color: var(--ink); text-decoration: none; letter-spacing: -.01em }
main { width: min(34rem, 100% - 2rem); margin: 1rem auto auto; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; padding: 2rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; letter-spacing: -.01em; margin-top: 2.5rem }
h1 { font-size: 1.45rem; letter-spacing: -.02em; margin-bottom: .25rem }
p { color: var(--soft) }
table { width: 100%; border-collapse: collapse; margin: 1.5rem 0 }
td { padding: .7rem 0; border-top: 1px solid var(--line); vertical-align: top }
td + td { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
tr.total td { font-weight: 650; border-top: 2px solid var(--ink) }
label input, label .soft { font-weight: 400 } label .soft { display: block; margin-top: .3rem }
label { display: block; margin-top: 1rem; font-size: .9rem; font-weight: 550 }
input { width: 100%; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 9px; padding: .65rem .8rem; margin-top: .3rem }
button { width: 100%; margin-top: 1.5rem; font: inherit; font-weight: 650; padding: .8rem; border: 0; border-radius: 9px; background: var(--sea); color: var(--sea-ink); cursor: pointer }
button.quiet { background: transparent; color: var(--soft); border: 1px solid var(--line); margin-top: .75rem }
button:focus-visible, input:focus-visible, a:focus-visible { outline: 3px solid color-mix(in srgb, var(--sea) 50%, transparent); outline-offset: 2px }
.badge { display: inline-block; font-size: .8rem; font-weight: 650; padding: .1rem .6rem; border-radius: 99px; border: 1px solid currentColor }
button.small { width: auto; margin: 0; padding: .35rem .8rem; font-size: .85rem; background: transparent; color: var(--soft); border: 1px solid var(--line) }
.links { display: flex; justify-content: space-between; gap: 1rem; margin-top: 1.25rem; font-size: .92rem } .links a { color: var(--sea) }
code { font: .9em ui-monospace, monospace } .secret { display: block; margin-top: .5rem; color: var(--ink); font-weight: 650; user-select: all }
td a { color: var(--sea) } .soft { color: var(--soft); font-size: .9rem }
.good { color: var(--good) } .warn { color: var(--warn) }
.note { margin-top: 1rem; font-size: .88rem; padding: .7rem .9rem; border-radius: 9px; background: var(--ground); border: 1px solid var(--line) }
.code { font: 650 1.9rem/1.2 ui-monospace, monospace; letter-spacing: .08em; text-align: center; margin: 1.2rem 0 }
dl { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .3rem 1rem; font-size: .92rem; margin-top: 1rem } dt { color: var(--soft) }
main.wide { width: min(60rem, 100% - 2rem) }
pre { margin: .75rem 0; padding: .8rem 1rem; border-radius: 9px; background: var(--ground); border: 1px solid var(--line); overflow-x: auto; font: .85rem/1.45 ui-monospace, monospace }
details { border: 1px solid var(--line); border-radius: 9px; margin-top: .5rem; padding: .55rem .9rem } summary { cursor: pointer; display: flex; gap: .75rem; align-items: baseline; flex-wrap: wrap } summary .soft { margin-left: auto }
details[open] > summary { margin-bottom: .75rem } h4 { margin-top: 1rem; font-size: .9rem } table.fields { margin: .4rem 0; font-size: .88rem } table.fields td { padding: .35rem 0 } table.fields td + td { text-align: left; white-space: normal; padding-left: 1.5rem; width: 60% }
.method { font: 700 .78rem ui-monospace, monospace; min-width: 4rem; color: var(--sea) } .method.delete { color: var(--warn) } .method.post { color: var(--good) }
.option { border-left: 3px solid var(--line); padding-left: .9rem; margin: .5rem 0 } .answer { margin: .5rem 0 } .refusal { font-size: .86rem; margin-top: .3rem }
.test-payments { color: var(--warn) }
select { font-weight: 400 } textarea, select { width: 100%; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 9px; padding: .65rem .8rem; margin-top: .3rem } textarea { font: .9rem/1.45 ui-monospace, monospace } textarea:focus-visible, select:focus-visible, summary:focus-visible, .log:focus-visible { outline: 3px solid color-mix(in srgb, var(--sea) 50%, transparent); outline-offset: 2px }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem 2rem; margin-top: 1rem } .charts figcaption { font-size: .9rem; font-weight: 550 } .charts svg { display: block; width: 100%; height: 4rem; margin-top: .3rem; border-bottom: 1px solid var(--line); background: var(--ground) } .charts path { fill: none; stroke: var(--sea); stroke-width: 1.5; vector-effect: non-scaling-stroke }
.check { display: flex; gap: .5rem; align-items: center } .check input { width: auto; margin: 0 }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; margin-top: 1rem } .actions a, p a { color: var(--sea) } td form { display: inline-block; margin: 0 0 .4rem .4rem }
h1 .badge { vertical-align: middle }
/* With column-reverse, the box stays scrolled to its end while it grows. */
p.ended { margin-top: 1rem } .until-end:has(~ .ended) { display: none }
.log { display: flex; flex-direction: column-reverse; max-height: 65vh; overflow: auto; margin-top: 1rem; border: 1px solid var(--line); border-radius: 9px; background: var(--ground) } .log pre { border: 0; margin: 0; overflow: visible; white-space: pre-wrap; overflow-wrap: anywhere }
@media (max-width: 40rem) { header { flex-wrap: wrap; gap: .5rem 1rem } header > a { white-space: nowrap } main { padding: 1.25rem } main, main.wide { width: calc(100% - 1rem) } .rows td { display: block; text-align: left; white-space: normal } .rows td + td { border: 0; padding-top: 0 } .rows td + td form { margin: 0 .4rem .4rem 0 } table.fields td { display: block } table.fields td + td { width: auto; padding: 0 0 .35rem; border: 0 } }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #333; --line: #bbb; --paper: #fff; --good: #000; --warn: #000 }
  body { background: none; display: block } main { border: 0; width: 100%; padding: 0 1.5rem } button, header, .note, .screen-only { display: none }
  footer { visibility: hidden } .test-payments { visibility: visible }
}
`;

const takesTestPayments = (): boolean => {
  const c = tryGetContext<AppEnv>();
  return c !== undefined && configOf(c.env).PAYMENTS === "test";
};

/** Based on the cookie alone, which is all that public pages check. */
const hasSession = (): boolean => tryGetContext<AppEnv>()?.get("hasSession") ?? false;

/** The layout of every server-rendered page: no scripts, no external resources. */
export const Layout = ({
  title,
  signedIn = hasSession(),
  wide = false,
  refreshSeconds = null,
  children,
}: {
  title: string;
  signedIn?: boolean;
  wide?: boolean;
  /** Reloads a page without forms while something on it is in progress. */
  refreshSeconds?: number | null;
  children: Child;
}) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="robots" content="noindex" />
      {refreshSeconds !== null && <meta http-equiv="refresh" content={String(refreshSeconds)} />}
      <title>{`${title} · Berth`}</title>
      <style dangerouslySetInnerHTML={{ __html: style }} />
    </head>
    <body>
      <header>
        <a href="/">⚓ Berth</a>
        {signedIn && (
          <>
            <nav>
              <a href="/">Sites</a>
              <a href="/account">Account</a>
              <a href="/docs">API</a>
            </nav>
            <form method="post" action="/sign-out">
              <button class="small" type="submit">
                Sign out
              </button>
            </form>
          </>
        )}
      </header>
      <main class={wide ? "wide" : ""}>{children}</main>
      <footer>
        {takesTestPayments() && (
          <p class="test-payments">
            <strong>Test payments</strong>: this installation uses the embedded test processor. No money
            moves.
          </p>
        )}
        Hosting that people own.
      </footer>
    </body>
  </html>
);
