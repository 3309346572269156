import type { Context } from "hono";
import type { AppEnv } from "../app-env.ts";
import { credentialOf } from "../ctx.ts";
import { conflict } from "../domain/app-error.ts";
import { isOver } from "../services/deployments/log-over.ts";
import type { Id } from "../../protocol/ids.ts";

type Asked = { follow: "0" | "1"; limit: number; cursor: number };

type Logged = { id: Id<"deployment" | "command">; finishedAt: Date | null };

const logOf = (c: Context<AppEnv>, { id }: Logged) =>
  c.env.DEPLOYMENT_LOG.get(c.env.DEPLOYMENT_LOG.idFromName(id));

/** The log after a line of it, as server-sent events that end with it. @throws AppError conflict with too many readers */
export async function followLog(
  c: Context<AppEnv>,
  logged: Logged,
  after: number,
): Promise<ReadableStream<Uint8Array>> {
  const { ctx } = c.var;
  const events = await logOf(c, logged).follow(after, credentialOf(ctx), isOver(ctx, logged.finishedAt));
  if (!events) throw conflict("Too many readers follow this log already: close one of them first.");
  return events;
}

/** The log of a deployment or a command: a page of it, or server-sent events that go on after `Last-Event-ID`. */
export async function answerLog(
  c: Context<AppEnv>,
  logged: Logged,
  { follow, limit, cursor }: Asked,
): Promise<Response> {
  if (follow === "1") {
    const resumeAfter = Number(c.req.header("Last-Event-ID") ?? cursor);
    const after = Number.isSafeInteger(resumeAfter) && resumeAfter > 0 ? resumeAfter : 0;
    const events = await followLog(c, logged, after);
    return c.body(events, 200, { "Content-Type": "text/event-stream" });
  }
  const lines = await logOf(c, logged).read(cursor, limit);
  return c.json({ data: lines, nextCursor: lines.length === limit ? String(lines.at(-1)?.seq) : null });
}
