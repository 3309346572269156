import { html } from "hono/html";
import * as z from "zod";
import type { ErrorCode } from "../../protocol/errors.ts";
import { Layout } from "./kit/layout.tsx";
import { Heading } from "./kit/parts.tsx";

const said: Partial<Record<ErrorCode, [title: string, text: string]>> = {
  not_found: ["Not found", "This page does not exist. It may have been removed, or the link is incomplete."],
  forbidden: [
    "Not allowed",
    "The resource belongs to someone else. If it is yours, sign in with the account that owns it.",
  ],
  unauthorized: ["Sign in first", "This page is only for people who are signed in."],
  payment_required: [
    "Not paid yet",
    "It becomes available once its invoice is paid: see the unpaid invoices under Billing.",
  ],
  payload_too_large: [
    "Too large",
    "What you sent is larger than this page accepts. Shorten it and send it again.",
  ],
  rate_limited: ["Too many attempts", "Wait a few minutes, then try again."],
  conflict: ["Not possible right now", "The state has changed in the meantime. Go back and reload the page."],
  server_error: ["That did not work", "It is our fault, not yours. Try again in a moment."],
};

const next: Partial<Record<ErrorCode, [href: string, label: string]>> = {
  unauthorized: ["/sign-in", "Sign in"],
  payment_required: ["/billing", "To Billing"],
};

/** An error page for people. It keeps the navigation of those who are signed in. */
export function errorPage(code: ErrorCode, { requestId, reason, issues }: Record<string, unknown>) {
  const [title, text] = said[code] ?? ["That did not work", "Go back and try again."];
  const why = typeof reason === "string" ? reason : issuesOf(issues);
  const [href, label] = next[code] ?? ["/", "Back to the home page"];
  return html`<!doctype html>${(
      <Layout title={title}>
        <div class="sheet">
          <Heading title={title} />
          <p>{why ?? text}</p>
          {typeof requestId === "string" && (
            <p class="soft">
              If it happens again, give this code to the operator: <code>{requestId}</code>
            </p>
          )}
          <p class="buttons">
            <a class="button primary" href={href}>
              {label}
            </a>
            <a class="button" href="/docs">
              Docs
            </a>
          </p>
        </div>
      </Layout>
    )}`;
}

const Issues = z.array(z.object({ path: z.string(), message: z.string() }));
const issuesOf = (issues: unknown): string | undefined =>
  Issues.safeParse(issues)
    .data?.map(({ path, message }) => `${path === "" ? "" : `${path}: `}${message.replace(/\.$/, "")}.`)
    .join(" ");
