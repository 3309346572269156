import { Hono } from "hono";
import * as z from "zod";
import { refuseSuspended } from "../api/access.ts";
import type { AppEnv } from "../app-env.ts";
import { isPendingId, type PendingStep } from "../assistant/pending.ts";
import { runTaken } from "../assistant/run-tool.ts";
import { accountOf, type Actor } from "../ctx.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { limitAddress } from "../middleware/limit.ts";
import { signedIn } from "../middleware/signed-in.ts";
import { speakerOf } from "../services/chat/speaker.ts";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";
import { ConfirmedPage, ConfirmPage, NothingToConfirmPage } from "../pages/confirm.tsx";

const Decision = z.object({ decision: z.enum(["confirm", "decline"]) });

/** Where a person confirms what a client of MCP asked for: signed in, on our own form, once. */
export const confirmPage = new Hono<AppEnv>()
  .use(limitAddress, signedIn, noteViewer)
  .get("/:id", async (c) => {
    const { ctx } = c.var;
    const id = c.req.param("id");
    const call = isPendingId(id) ? await ctx.pendingCalls.read(id, accountOf(ctx)) : null;
    if (!call) return show(c, <NothingToConfirmPage />, 404);
    return show(c, <ConfirmPage id={id} summary={call.step.summary} email={c.get("viewer")?.email} />);
  })
  .post("/:id", limitBody, async (c) => {
    const { ctx } = c.var;
    const nothing = () => show(c, <NothingToConfirmPage />, 404);
    if (ctx.actor.type !== "session") return nothing();
    refuseSuspended(ctx.actor);
    const id = c.req.param("id");
    const form = Decision.safeParse(await formFields(c.req));
    const isAgreed = form.data?.decision === "confirm";
    const call =
      isPendingId(id) && form.success
        ? await ctx.pendingCalls.take(id, accountOf(ctx), isAgreed ? "taken" : "declined")
        : null;
    if (!call) return nothing();
    if (!isAgreed) return show(c, <ConfirmedPage outcome={null} />);
    const assistant: Actor = { type: "assistant", conversationId: null, ...speakerOf(ctx) };
    const outcome = await runTaken(contextFor(c, assistant), id, call.step as PendingStep);
    return show(c, <ConfirmedPage outcome={outcome} />);
  });
