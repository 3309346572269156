import type { Context } from "hono";
import type { AppEnv } from "../app-env.ts";
import { conflict } from "../domain/app-error.ts";
import type { Id } from "../../protocol/ids.ts";

type Asked = { follow: "0" | "1"; limit: number; cursor: number };

/** What ended so long ago has its last line, or never will: its log is kept for a time, and news of the end may be lost. */
const lastLineMs = 60_000;

/** The log of a deployment or a command: a page of it, or server-sent events that go on after `Last-Event-ID`. */
export async function answerLog(
  c: Context<AppEnv>,
  { id, finishedAt }: { id: Id<"deployment" | "command">; finishedAt: Date | null },
  { follow, limit, cursor }: Asked,
): Promise<Response> {
  const log = c.env.DEPLOYMENT_LOG.get(c.env.DEPLOYMENT_LOG.idFromName(id));
  if (follow === "1") {
    const resumeAfter = Number(c.req.header("Last-Event-ID") ?? cursor);
    const isOver = finishedAt !== null && finishedAt.getTime() < c.var.ctx.now().getTime() - lastLineMs;
    const after = Number.isSafeInteger(resumeAfter) && resumeAfter > 0 ? resumeAfter : 0;
    const events = await log.follow(after, isOver);
    if (!events) throw conflict("Too many readers follow this log already: close one of them first.");
    return c.body(events, 200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  }
  const lines = await log.read(cursor, limit);
  return c.json({ data: lines, nextCursor: lines.length === limit ? String(lines.at(-1)?.seq) : null });
}
