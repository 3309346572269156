import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { onlyViewed } from "../api/access.ts";
import { call } from "../api/call.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { formToAuth } from "../middleware/auth.ts";
import { formOf, limitBody } from "../middleware/body.ts";
import { takeForChat } from "../middleware/limit.ts";
import { say } from "../middleware/page.ts";
import { personOf, toSignIn } from "../middleware/signed-in.ts";
import { AppPage } from "../pages/kit/layout.tsx";
import { linesInto } from "../pages/lines-into.ts";
import { Fields, type Asked, type Screen, type View } from "../pages/kit/screen.ts";
import { inLabels, sentenceOf } from "../pages/kit/setting-labels.ts";

async function askedOf(c: Context<AppEnv>): Promise<Asked | null> {
  const ctx = await personOf(c);
  if (!ctx) return null;
  c.set("ctx", ctx);
  const viewer = await call(ctx, "getAccount", {});
  c.set("viewer", viewer);
  return {
    ctx,
    viewer,
    param: (name) => c.req.param(name) ?? "",
    query: (name) => c.req.query(name),
    countMessage: () => takeForChat(c),
    async toAuth(path, fields) {
      // The session is the operator's, whose own account it would change.
      if (ctx.actor.type === "viewer") throw onlyViewed();
      const answer = await formToAuth(c, path, fields);
      for (const cookie of answer.headers.getSetCookie()) c.header("Set-Cookie", cookie, { append: true });
      return answer;
    },
  };
}

async function rendered(
  c: Context<AppEnv>,
  { body, streamed, ...frame }: View,
  status: 200 | 400 | 409 | 429 = 200,
): Promise<Response> {
  const page = html`<!doctype html>${<AppPage {...frame}>{body}</AppPage>}`;
  if (!streamed) return c.html(page, status);
  const { mark, events, last } = streamed;
  const lines = linesInto(String(await page), mark, events, async () => String(await html`${await last()}`));
  // Compression would hold back lines until a buffer is full.
  return c.body(lines, status, {
    "Content-Type": "text/html; charset=UTF-8",
    "Content-Encoding": "Identity",
  });
}

/** The routes of screens. */
export function routesOfScreens(screens: readonly Screen[]): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  for (const screen of screens) {
    routes.get(screen.path, async (c) => {
      const asked = await askedOf(c);
      return asked ? rendered(c, await screen.show(asked)) : toSignIn(c);
    });
    const { forms } = screen;
    if (forms)
      routes.post(screen.path, limitBody, async (c) => {
        const asked = await askedOf(c);
        if (!asked) return toSignIn(c);
        const sent = fieldsOf(await formOf(c.req));
        const form = sent.get("form") ?? "";
        const id = form.split(":")[0] ?? "";
        const act = Object.hasOwn(forms, id) ? forms[id] : undefined;
        if (!act) throw new AppError("not_found");
        try {
          const done = await act(asked, new Fields(sent));
          if ("again" in done) {
            const values = { ...Object.fromEntries(sent), ...done.values };
            c.set("refused", { form, values, problems: done.problems ?? {}, reason: null });
            return await rendered(c, done.again, done.problems ? 400 : 200);
          }
          const { to, said, tone = "good", secret } = done;
          if (said !== undefined) say(c, { tone, text: said, ...(secret !== undefined && { secret }) });
          return c.redirect(to, 303);
        } catch (error) {
          const reason = error instanceof AppError ? refusalOf(error) : null;
          if (reason === null) throw error;
          c.set("refused", { form, values: Object.fromEntries(sent), ...reason });
          const view = await screen.show(asked);
          const page = await rendered(c, view, reason.status);
          // A log is written for as long as it goes on.
          if (view.streamed || (await page.clone().text()).includes("data-reason")) return page;
          // The form is one button, or what it was about has changed and it is no longer on the page.
          c.set("flash", { tone: "bad", text: reason.reason });
          return await rendered(c, view, reason.status);
        }
      });
  }
  return routes;
}

/** Forms send line breaks as CRLF. */
const fieldsOf = (form: URLSearchParams): URLSearchParams =>
  new URLSearchParams([...form].map(([name, value]) => [name, value.replaceAll("\r\n", "\n")]));

const Issues = z.array(z.object({ path: z.string(), message: z.string() }));

/** What a person is told beside the form; null: the page itself is not there for them. */
function refusalOf({ code, extra }: AppError) {
  const { status } = errorCatalogue[code];
  if (code === "rate_limited")
    return {
      status: 429 as const,
      problems: {},
      reason: "Too many requests: wait a minute, then send it again.",
    };
  if (status !== 400 && status !== 402 && status !== 403 && status !== 409) return null;
  const issues = Issues.safeParse(extra["issues"]).data ?? [];
  if (code === "forbidden" && typeof extra["reason"] !== "string") return null;
  // A field is named by any part of its path: `settings.ingress.redirects.0.to` is about the field `redirects`.
  const problems = Object.fromEntries(
    issues.flatMap(({ path, message }) => [path, ...path.split(".")].map((name) => [name, message])),
  );
  const reason =
    typeof extra["reason"] === "string"
      ? inLabels(extra["reason"])
      : issues.length > 0
        ? `Nothing was changed. ${issues.map(sentenceOf).join(" ")}`
        : "Nothing was changed: the form is not valid.";
  return { status: status === 409 ? (409 as const) : (400 as const), problems, reason };
}
