import type { Child } from "hono/jsx";
import * as z from "zod";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import type { Ctx } from "../../ctx.ts";
import { parsed } from "../../domain/parsed.ts";
import type { Frame } from "./layout.tsx";
import type { Flash } from "../../page-state.ts";

/** A request for a screen by the signed-in person. */
export type Asked = {
  ctx: Ctx;
  viewer: OwnAccount;
  /** A part of the path; it is there, since the path matched. */
  param: (name: string) => string;
  query: (name: string) => string | undefined;
  /** Counts a message to the assistant, as the API does. @throws AppError rate_limited */
  countMessage: () => Promise<void>;
  /** A request to better-auth with this browser's session; cookies that it sets are set. */
  toAuth: (path: string, fields: Record<string, unknown>) => Promise<Response>;
};

/** A log that is written into the page while it is open, for readers without a script. */
export type Streamed = {
  /** Where the lines go: a text that stands once in the body. */
  mark: string;
  /** Server-sent events as the API's. */
  events: ReadableStream<Uint8Array>;
  /** What is said after the last line. */
  last: () => Promise<Child>;
};

export type View = Frame & { body: Child; streamed?: Streamed };

/** Where a form leads, and what is said there. */
export type Done = { to: string; said?: string; tone?: Flash["tone"]; secret?: string };

/** For a form that only asks: its page at once, with what was typed but for `values`; `problems`: it was refused at these fields. */
type Again = {
  again: View;
  values?: Readonly<Record<string, string>>;
  problems?: Readonly<Record<string, string>>;
};

/**
 * One page: what it shows, and its forms. A form that is refused (AppError) shows the page again with what was typed and why.
 * Both run as operations of the API (api/call.ts), with its checks and its records.
 */
export type Screen = {
  path: string;
  show(asked: Asked): Promise<View>;
  /** By the id of the form; a form per row (`id:row`) has its row in `asked`'s fields. */
  forms?: Readonly<Record<string, (asked: Asked, fields: Fields) => Promise<Done | Again>>>;
};

/** What a form sent: line breaks are \n; several values of one name are `all`. */
export class Fields {
  private readonly sent: URLSearchParams;
  constructor(sent: URLSearchParams) {
    this.sent = sent;
  }
  text(name: string): string {
    return this.sent.get(name) ?? "";
  }
  all(name: string): string[] {
    return this.sent.getAll(name);
  }
  /** The last value of each name. */
  record(): Record<string, string> {
    return Object.fromEntries([...this.sent].filter(([name]) => name !== "form"));
  }
  /** The fields by a schema; empty ones are left out. @throws AppError invalid_request with an issue per field */
  read<Schema extends z.ZodType>(schema: Schema): z.infer<Schema> {
    return parsed(
      schema,
      Object.fromEntries(Object.entries(this.record()).filter(([, value]) => value !== "")),
    );
  }
  /** The fields by a schema; empty ones are null, which removes a setting. @throws AppError invalid_request */
  readWithNulls<Schema extends z.ZodType>(schema: Schema): z.infer<Schema> {
    return parsed(
      schema,
      Object.fromEntries(
        Object.entries(this.record()).map(([name, value]) => [name, value === "" ? null : value]),
      ),
    );
  }
}
