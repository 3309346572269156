import { createMiddleware } from "hono/factory";
import { requireAccess } from "../api/access.ts";
import type { AppEnv } from "../app-env.ts";
import { invalid } from "../domain/app-error.ts";
import { claimRequest } from "../services/idempotency/claim.ts";

/**
 * Idempotency-Key on whatever changes something (draft-ietf-httpapi-idempotency-key-header): the same key, query and body
 * within a day replays the first answer byte for byte, without fields that are shown once. Refusals had no effect and are not
 * stored, so a corrected request may reuse the key. Server errors may have had effects and are stored.
 * @throws AppError as `requireAccess`: nobody is told the answer to what they may not ask now
 */
export const idempotency = (operation: Parameters<typeof requireAccess>[1]) =>
  createMiddleware<AppEnv>(async (c, next) => {
    const key = c.req.header("Idempotency-Key");
    if (key === undefined) return next();
    if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw invalid("Idempotency-Key", "1–255 visible ASCII characters");
    const claim = await claimRequest(c.var.ctx, {
      key,
      method: c.req.method,
      path: c.req.path,
      query: new URL(c.req.url).search,
      body: await c.req.text(),
    });
    if ("replay" in claim) {
      requireAccess(c.var.ctx, operation);
      const { status, location, body } = claim.replay;
      if (location !== null) c.header("Location", location);
      const headers = { "Content-Type": "application/json", "Idempotency-Replayed": "true" };
      return c.body(body, status as 200, headers);
    }
    const answered = (async () => {
      await next();
      const mayHaveActed = c.res.ok || c.res.status === 500;
      if (!mayHaveActed || c.get("isRead")) return claim.release();
      // A stream has only begun, and is read by whoever asked for it.
      const isStream = c.res.headers.get("Content-Type")?.startsWith("text/event-stream");
      return claim.keep({
        status: c.res.status,
        location: c.res.headers.get("Location"),
        body: isStream ? null : keptBody(await c.res.clone().text(), c.get("shownOnce")),
      });
    })();
    // If the client disconnects, the first request still completes, so that a retry with this key finds the answer.
    c.executionCtx.waitUntil(answered.catch(() => undefined));
    await answered;
  });

function keptBody(body: string, shownOnce: readonly string[] | undefined): string {
  if (shownOnce === undefined) return body;
  const shown = JSON.parse(body) as Record<string, unknown>;
  for (const name of shownOnce) delete shown[name];
  return JSON.stringify(shown);
}
