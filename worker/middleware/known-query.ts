import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { invalid } from "../domain/app-error.ts";

const routeOf = ({ method, path, at }: Operation) =>
  `${method.toUpperCase()} ${at === undefined ? "/api/v1" : ""}${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;

const all: Record<string, Operation> = { ...operations, ...entryOperations };
const byRoute = new Map(Object.values(all).map((one) => [routeOf(one), one]));

const operationOf = (c: Context<AppEnv>): Operation | undefined =>
  matchedRoutes(c)
    .map(({ method, path }) => byRoute.get(`${method} ${path}`))
    .find((operation) => operation !== undefined) ??
  // better-auth's are behind one route of ours; those of it that are in no list know their own parameters.
  byRoute.get(`${c.req.method} ${c.req.path}`);

/** 400 for a parameter that the endpoint does not name, whether or not it takes any: one place, so that none forgets. */
export const knownQuery = createMiddleware<AppEnv>(async (c, next) => {
  const names = Object.keys(c.req.queries());
  const operation = names.length > 0 ? operationOf(c) : undefined;
  if (operation) {
    const known = operation.query?.shape ?? {};
    const unknown = names.find((name) => !Object.hasOwn(known, name));
    if (unknown !== undefined) throw invalid(unknown, "no parameter of this endpoint");
  }
  await next();
});
