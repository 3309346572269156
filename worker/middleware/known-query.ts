import { createMiddleware } from "hono/factory";
import type { Operation } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { invalid } from "../domain/app-error.ts";

/** 400 for a parameter that the endpoint does not name, whether or not it takes any. */
export const knownQuery = ({ query }: Operation) => {
  const known = query?.shape ?? {};
  return createMiddleware<AppEnv>(async (c, next) => {
    const unknown = Object.keys(c.req.queries()).find((name) => !Object.hasOwn(known, name));
    if (unknown !== undefined) throw invalid(unknown, "no parameter of this endpoint");
    await next();
  });
};
