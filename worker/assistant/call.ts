import type * as z from "zod";
import {
  operations,
  type Answered,
  type Input,
  type Operation,
  type Params,
} from "../../protocol/api/operations.ts";
import type { Ctx } from "../ctx.ts";
import { call as dispatch } from "../api/call.ts";
import type { VerbId } from "../api/verbs.ts";
import { parsed } from "../domain/parsed.ts";

type Query<Of> = Of extends { query: infer Schema extends z.ZodType }
  ? {
      [Key in keyof z.input<Schema>]: Key extends keyof z.output<Schema>
        ? z.input<Schema>[Key] | z.output<Schema>[Key]
        : never;
    }
  : unknown;
type Body<Of> = Of extends { body: infer Schema extends z.ZodType } ? z.input<Schema> : unknown;

/** What a request may say: defaults may be left out, and numbers of a query be numbers. */
type Asked<Id extends VerbId> = Params<(typeof operations)[Id]["path"]> &
  Query<(typeof operations)[Id]> &
  Body<(typeof operations)[Id]>;

/**
 * The dispatcher for tools: what a model or a person wrote is held to the operation's schemas, as a route holds a request.
 *
 * @throws AppError invalid_request
 */
export async function call<Id extends VerbId>(ctx: Ctx, id: Id, asked: Asked<Id>): Promise<Answered<Id>> {
  const { path, query, body }: Operation = operations[id];
  const inPath: Record<string, unknown> = {};
  const inQuery: Record<string, unknown> = {};
  const inBody: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(asked as object)) {
    if (value === undefined) continue;
    if (path.includes(`{${name}}`)) inPath[name] = value;
    else if (Object.hasOwn(query?.shape ?? {}, name)) inQuery[name] = String(value);
    else inBody[name] = value;
  }
  const held = {
    ...inPath,
    ...(query && parsed(query, inQuery)),
    ...(body && (parsed(body, inBody) as object)),
  };
  return dispatch(ctx, id, held as Input<Id>);
}
