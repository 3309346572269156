import { Hono } from "hono";
import { isId } from "../../protocol/ids.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { requireSameOrigin, sessionActor } from "../middleware/session.ts";
import { toSignIn } from "../middleware/signed-in.ts";
import { endViewing, startViewing } from "../middleware/view-as.ts";
import { recordView } from "../services/accounts/view-as.ts";

/** Forms by which an operator begins and ends to see the dashboard as a customer does. */
export const viewAs = new Hono<AppEnv>()
  .post("/", limitBody, async (c) => {
    const actor = await sessionActor(c);
    if (!actor) return toSignIn(c);
    requireSameOrigin(c);
    const { accountId } = await formFields(c.req);
    if (typeof accountId !== "string" || !isId("account", accountId)) throw new AppError("not_found");
    await recordView(contextFor(c, actor), accountId);
    startViewing(c, accountId);
    return c.redirect("/", 303);
  })
  .post("/end", limitBody, (c) => {
    requireSameOrigin(c);
    endViewing(c);
    return c.redirect("/", 303);
  });
