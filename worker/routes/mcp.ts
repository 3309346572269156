import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import type { Context } from "hono";
import { toolGroups, type ToolGroup } from "../../protocol/api/tools.ts";
import type { AppEnv } from "../app-env.ts";
import { isGroup } from "../assistant/prompt.ts";
import { configOf } from "../config.ts";
import type { Actor } from "../ctx.ts";
import { AppError, invalid } from "../domain/app-error.ts";
import { authenticateMcp } from "../middleware/authenticate.ts";
import { limitBody, textOf } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { limitAddress } from "../middleware/limit.ts";
import { notOurPage } from "../middleware/session.ts";
import { speakerOf } from "../services/chat/speaker.ts";

const metadataPath = "/.well-known/oauth-protected-resource/mcp";

/** A 401 says where a client learns how to get a key (RFC 9728, section 5.1). */
const challenge = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  if (c.res.status === 401)
    c.header("WWW-Authenticate", `Bearer resource_metadata="${configOf(c.env).SITE_URL}${metadataPath}"`);
});

/** Browsers of other sites are refused, as the protocol demands against DNS rebinding. @throws AppError forbidden */
const ownOrigin = createMiddleware<AppEnv>(async (c, next) => {
  const origin = c.req.header("Origin");
  const config = configOf(c.env);
  if (origin !== undefined && origin !== config.SITE_URL) throw notOurPage(config);
  await next();
});

/** All groups, or those that `?groups=sites,logs` names. @throws AppError invalid_request */
function groupsOf(c: Context<AppEnv>): ToolGroup[] {
  const unknown = Object.keys(c.req.queries()).find((name) => name !== "groups");
  if (unknown !== undefined) throw invalid(unknown, "unknown parameter");
  const named = c.req.query("groups")?.split(",");
  const wrong = named?.find((name) => !isGroup(name));
  if (wrong !== undefined)
    throw invalid("groups", `there is no group ${wrong}: ${Object.keys(toolGroups).join(", ")}`);
  return (Object.keys(toolGroups) as ToolGroup[]).filter((name) => named?.includes(name) ?? true);
}

/** The assistant's tools for clients of the Model Context Protocol, with an API key. */
export const mcp = new Hono<AppEnv>()
  .use(challenge, ownOrigin, authenticateMcp, limitBody)
  .all("/", async (c) => {
    const groups = groupsOf(c);
    if (c.var.ctx.actor.type !== "key") throw new AppError("unauthorized");
    // It would count as one request, whatever is in it; revisions since June 2025 have none.
    if ((await textOf(c.req.raw.clone())).trimStart().startsWith("["))
      throw invalid("", "A batch is not accepted: send each message in a request of its own.");
    const assistant: Actor = { type: "assistant", conversationId: null, ...speakerOf(c.var.ctx) };
    // Loaded on first use: nothing else needs the protocol.
    const { answerMcp } = await import("../assistant/mcp.ts");
    const answer = await answerMcp(contextFor(c, assistant), groups, c.req.raw);
    // With the headers that were set before, which an answer of another's making lacks.
    return c.newResponse(answer.body, answer);
  });

/** Protected resource metadata (RFC 9728); `routes/oauth.tsx` is the authorization server that it names. */
export const mcpMetadata = new Hono<AppEnv>().use(limitAddress).get("/oauth-protected-resource/mcp", (c) => {
  const { SITE_URL } = configOf(c.env);
  return c.json({
    resource: `${SITE_URL}/mcp`,
    resource_name: "Berth",
    authorization_servers: [SITE_URL],
    scopes_supported: ["mcp"],
    bearer_methods_supported: ["header"],
    resource_documentation: `${SITE_URL}/docs`,
  });
});
