import type * as z from "zod";
import type { entryOperations } from "../protocol/api/entry-operations.ts";
import type { operations } from "../protocol/api/operations.ts";

/** Every operation, by its id in the OpenAPI document. */
type Registry = typeof operations & typeof entryOperations;
export type OperationId = keyof Registry;

type Params<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { [Key in Name]: string } & Params<Rest>
  : unknown;

/** A parameter of a query may also be given as the value that the schema makes of it, such as a number. */
type Query<Schema> = Schema extends z.ZodType
  ? {
      [Name in keyof z.input<Schema>]:
        | z.input<Schema>[Name]
        | (Name extends keyof z.output<Schema> ? z.output<Schema>[Name] : never);
    }
  : unknown;
type Body<Of> = Of extends { body: infer Schema extends z.ZodType }
  ? Of extends { optionalBody: true }
    ? Partial<z.input<Schema>>
    : z.input<Schema>
  : unknown;

/** Path parameters, query and body of an operation, in one object. Their names never overlap. */
export type Input<Id extends OperationId> = Params<Registry[Id]["path"]> &
  (Registry[Id] extends { query: infer Schema } ? Query<Schema> : unknown) &
  Body<Registry[Id]>;

type Entry<Id extends OperationId> = Registry[Id]["answers"][number];
/** Entries whose `with` names a field of the input; if there are none, those without `with`. */
type Chosen<Of, Given> =
  Extract<Of, { with: keyof Given }> extends never
    ? Exclude<Of, { with: string }>
    : Extract<Of, { with: keyof Given }>;

/** What an operation answers to this input. */
export type Answer<Id extends OperationId, Given = unknown> = z.output<Chosen<Entry<Id>, Given>["schema"]>;

/** The operations that answer server-sent events as well. */
export type StreamId = {
  [Id in OperationId]: Registry[Id] extends { streams: true } ? Id : never;
}[OperationId];

/** The operations that answer a page of a list. */
export type ListId = {
  [Id in OperationId]: Answer<Id> extends { data: unknown[]; nextCursor: string | null } ? Id : never;
}[OperationId];
