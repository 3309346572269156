import { html } from "hono/html";
import * as z from "zod";
import type { ErrorCode } from "../../protocol/errors.ts";
import { Layout } from "./kit/layout.tsx";

const said: Partial<Record<ErrorCode, [title: string, text: string]>> = {
  not_found: ["Not found", "This page does not exist. It may have been removed, or the link is incomplete."],
  forbidden: [
    "Not allowed",
    "The request came from another site, or the resource belongs to someone else. Go back and try again.",
  ],
  rate_limited: ["Too many attempts", "Wait a few minutes, then try again."],
  conflict: ["Not possible right now", "The state has changed in the meantime. Go back and reload the page."],
};

/** An error page for people. */
export function errorPage(code: ErrorCode, { requestId, reason, issues }: Record<string, unknown>) {
  const [title, text] = said[code] ?? ["That did not work", "Go back and try again."];
  const why = typeof reason === "string" ? reason : issuesOf(issues);
  return html`<!doctype html>${(
      <Layout title={title}>
        <h1>{title}</h1>
        <p>{why ?? text}</p>
        {typeof requestId === "string" && (
          <p class="soft">
            If it happens again, give this code to the operator: <code>{requestId}</code>
          </p>
        )}
        <p class="links">
          <a href="/">Back to the home page</a>
        </p>
      </Layout>
    )}`;
}

const Issues = z.array(z.object({ path: z.string(), message: z.string() }));
const issuesOf = (issues: unknown): string | undefined =>
  Issues.safeParse(issues)
    .data?.map(({ path, message }) => `${path}: ${message}.`)
    .join(" ");
