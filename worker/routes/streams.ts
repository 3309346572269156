import { Hono, type Context } from "hono";
import * as z from "zod";
import { TerminalQuery } from "../../protocol/api/streams.ts";
import { requireAccess } from "../api/access.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { accountOf, type Ctx } from "../ctx.ts";
import { invalid } from "../domain/app-error.ts";
import { refusalBy } from "../domain/parsed.ts";
import { authenticate } from "../middleware/authenticate.ts";
import { takeFrom } from "../middleware/limit.ts";
import { notOurPage } from "../middleware/session.ts";
import { recorded } from "../services/activity/record.ts";
import { openTunnel } from "../services/databases/open-tunnel.ts";
import { openTerminal } from "../services/sites/open-terminal.ts";

type Opened<Query> = (ctx: Ctx, input: { id: string } & Query) => Promise<WebSocket>;

/**
 * Opens a WebSocket (docs/manual/streams.md) and records it. Browsers send cookies with WebSockets from any page, so with
 * a session the Origin has to be ours.
 */
const upgraded =
  <Query extends object>(id: string, schema: z.ZodType<Query>, open: Opened<Query>) =>
  async (c: Context<AppEnv, "/:id">): Promise<Response> => {
    const { ctx } = c.var;
    // It is a GET that can change anything.
    requireAccess(ctx, { access: "key", method: "post" });
    const config = configOf(c.env);
    if (ctx.actor.type === "session" && c.req.header("Origin") !== config.SITE_URL) throw notOurPage(config);
    if (c.req.header("Upgrade")?.toLowerCase() !== "websocket")
      throw invalid("", "This address accepts only WebSockets: send Upgrade: websocket.");
    const query = schema.safeParse(c.req.query());
    if (!query.success) throw refusalBy(query.error);
    await takeFrom(c, "streamOpened", accountOf(ctx));
    const input = { id: c.req.param("id"), ...query.data };
    const webSocket = await recorded(ctx, { id, operation: { access: "key" }, input }, (acting) =>
      open(acting, input),
    );
    return new Response(null, { status: 101, webSocket });
  };

/** WebSockets to a database's server and to a terminal in a site. Not in the OpenAPI document, which has no words for them. */
export const streams = new Hono<AppEnv>()
  .get("/databases/:id/tunnel", authenticate, upgraded("openDatabaseTunnel", z.strictObject({}), openTunnel))
  .get("/sites/:id/terminal", authenticate, upgraded("openSiteTerminal", TerminalQuery, openTerminal));
