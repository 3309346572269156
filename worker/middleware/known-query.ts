import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import type { Operation } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { invalid } from "../domain/app-error.ts";
import { parsed } from "../domain/parsed.ts";

/** @throws AppError invalid_request for a parameter that the endpoint does not name */
function refuseUnknown(c: Context<AppEnv>, { query }: Operation): void {
  const unknown = Object.keys(c.req.queries()).find((name) => !Object.hasOwn(query?.shape ?? {}, name));
  if (unknown !== undefined) throw invalid(unknown, "unknown parameter");
}

/** 400 for unknown parameters, also on endpoints without any. */
export const knownQuery = (operation: Operation) =>
  createMiddleware<AppEnv>(async (c, next) => {
    refuseUnknown(c, operation);
    await next();
  });

const byPath = new Map(
  Object.values<Operation>(entryOperations).map((one) => [`${one.method.toUpperCase()} ${one.path}`, one]),
);

/**
 * The same for better-auth's endpoints, which share one route, and 400 for unknown values; endpoints that we do not describe are
 * not checked.
 */
export const knownAuthQuery = createMiddleware<AppEnv>(async (c, next) => {
  const operation = byPath.get(`${c.req.method} ${c.req.path}`);
  if (operation) refuseUnknown(c, operation);
  const given = Object.entries(c.req.queries()).map(([name, all]) => [name, all.length > 1 ? all : all[0]]);
  if (operation?.query) parsed(operation.query, Object.fromEntries(given));
  await next();
});
