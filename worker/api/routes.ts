import { Hono, type Context, type MiddlewareHandler } from "hono";
import { operations, type Input, type Operation } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { anybody, authenticate } from "../middleware/authenticate.ts";
import { actAs } from "../middleware/context.ts";
import { body, limitBody, noBody, query, requireJson } from "../middleware/body.ts";
import { idempotency } from "../middleware/idempotency.ts";
import { knownQuery } from "../middleware/known-query.ts";
import { takeForChat } from "../middleware/limit.ts";
import { requireAccess } from "./access.ts";
import { call, isChange } from "./call.ts";
import { verbs, type VerbId } from "./verbs.ts";

type Handler = MiddlewareHandler<AppEnv>;

type Valid = Context<AppEnv, string, { in: object; out: { json: object; query: object } }>;

/** Path parameters, query and body, as parsed by the schemas. */
function inputOf(c: Valid, operation: Operation): Record<string, unknown> {
  return {
    ...c.req.valid("json"),
    ...c.req.valid("query"),
    ...(operation.streams && { lastEventId: c.req.header("Last-Event-ID") }),
    ...c.req.param(),
  };
}

/** Fills each `{field}` of a template with the field of the answer. */
const filled = (template: string, answer: object): string =>
  template.replaceAll(/\{(\w+)\}/g, (_, name: string) => String((answer as Record<string, unknown>)[name]));

const statusOf = ({ answers }: Operation, input: object) =>
  (answers.find((one) => (one.with ?? "") in input) ?? answers.find((one) => !one.with))?.status ?? 200;

const streamed = ({ download }: Operation): Record<string, string> =>
  download === undefined
    ? { "Content-Type": "text/event-stream" }
    : {
        "Content-Type": "application/json",
        "Content-Disposition": `attachment; filename="${download}"`,
      };

const answering =
  (id: VerbId, operation: Operation) =>
  async (c: Context<AppEnv>): Promise<Response> => {
    const isHead = c.req.method === "HEAD";
    // It would be shown to nobody.
    if (isHead && operation.shownOnce) throw new AppError("not_found");
    const ctx = c.get("ctx");
    const input = inputOf(c as Valid, operation);
    requireAccess(ctx, operation);
    if (operation.limit === "chat") await takeForChat(c);
    const mayRead = operation.readOnly === true || operation.readsUnless !== undefined;
    c.set("isRead", mayRead && !isChange(operation, input));
    c.set("shownOnce", operation.shownOnce);
    const answer = await call(ctx, id, input as Input<VerbId>);
    if (answer instanceof ReadableStream) {
      if (!isHead) return c.body(answer, 200, streamed(operation));
      await answer.cancel();
      return c.body(null, 200, streamed(operation));
    }
    if (operation.location !== undefined)
      c.header("Location", `/api/v1${filled(operation.location, answer)}`);
    return c.json(answer, statusOf(operation, input));
  };

/** The checks before a verb, in order: credentials and limits, parameters, body, schemas. */
function checks(operation: Operation): Handler[] {
  const changes = operation.method !== "get";
  const needsNone = operation.access === "none";
  return [
    // Health checks of monitoring systems are not rate-limited.
    needsNone ? (operation.at === "site" ? actAs("link") : anybody) : authenticate,
    knownQuery(operation),
    ...(changes ? [limitBody, requireJson] : []),
    ...(changes && !needsNone ? [idempotency(operation)] : []),
    ...(operation.query ? [query(operation.query) as Handler] : []),
    ...(operation.body ? [body(operation.body) as Handler] : changes ? [noBody] : []),
  ];
}

/** A route for each operation that has a verb: those below {base_url}, or those of the site itself. */
export function routesOf(at: Operation["at"]): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  for (const id of Object.keys(verbs) as VerbId[]) {
    const operation: Operation = operations[id];
    if (operation.at !== at) continue;
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ":$1");
    routes.on([operation.method], [path], ...checks(operation), answering(id, operation));
  }
  return routes;
}
