import { zValidator } from "@hono/zod-validator";
import type { ValidationTargets } from "hono";
import { bodyLimit } from "hono/body-limit";
import { createMiddleware } from "hono/factory";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { AppError, invalid } from "../domain/app-error.ts";
import { parsed, refusalBy } from "../domain/parsed.ts";

/** Exposes the schema on the validator, for code that lists the routes. */
const validated = <Target extends keyof ValidationTargets, Schema extends z.ZodType>(
  target: Target,
  schema: Schema,
) =>
  Object.assign(
    zValidator(target, schema, (result) => {
      if (!result.success) throw refusalBy(result.error);
    }),
    { target, schema },
  );

export const body = <Schema extends z.ZodType>(schema: Schema) => validated("json", schema);
export const query = <Schema extends z.ZodType>(schema: Schema) => validated("query", schema);

/**
 * The text of a request's body. @throws AppError invalid_request for a body that is not UTF-8, which would be read as
 * other text
 */
export async function textOf(request: { arrayBuffer(): Promise<ArrayBuffer> }): Promise<string> {
  const bytes = await request.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw notUtf8();
  }
}

/** The fields of a form. @throws AppError invalid_request, as `textOf` */
export async function formOf(request: { arrayBuffer(): Promise<ArrayBuffer> }): Promise<URLSearchParams> {
  const body = await textOf(request);
  try {
    for (const [encoded] of body.matchAll(/(?:%[0-9a-f]{2})+/gi)) decodeURIComponent(encoded);
  } catch {
    throw notUtf8();
  }
  return new URLSearchParams(body);
}

/** Its fields by name; the last counts. @throws AppError invalid_request, as `textOf` */
export const formFields = async (request: Parameters<typeof formOf>[0]): Promise<Record<string, string>> =>
  Object.fromEntries(await formOf(request));

const notUtf8 = () => invalid("", "The body is not valid UTF-8");

/** For an operation without a body, with which some clients send an empty object. */
export const noBody = createMiddleware<AppEnv>(async (c, next) => {
  const text = await c.req.text();
  if (text !== "") parsed(z.strictObject({}), JSON.parse(text));
  await next();
});

export const maxBodyBytes = 1024 * 1024;

const drainMs = 5000;

async function discard(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  // Bounds the total time, or a client could keep the request open with a byte now and then.
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), drainMs);
  try {
    for (let bytes = 0; bytes < 8 * maxBodyBytes;) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
    await reader.cancel();
  } finally {
    clearTimeout(timer);
  }
}

/** Sends the complete answer at once, with its length; the exchange ends when `drained` resolves. */
async function openUntil(drained: Promise<void>, answer: Response): Promise<Response> {
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const { readable, writable } = new FixedLengthStream(bytes.byteLength);
  const writer = writable.getWriter();
  // The client may have disconnected already.
  const sent = async () => {
    await writer.write(bytes);
    await drained;
    await writer.close();
  };
  void sent().catch(() => undefined);
  return new Response(readable, answer);
}

/**
 * Reads some of the remaining body after an error: a client that is cut off while sending sees a broken connection
 * instead of the answer. The answer itself does not wait.
 */
export const drainRequestBody = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  const { body } = c.req.raw;
  if (c.res.status < 400 || !body || body.locked) return;
  // Caught at once: the client may break off before the answer is written.
  const drained = discard(body).catch(() => undefined);
  c.res = await openUntil(drained, c.res);
});

/** 413 above 1 MiB, whether or not the length was declared. */
export const limitBody = bodyLimit({
  maxSize: maxBodyBytes,
  onError: () => {
    throw new AppError("payload_too_large");
  },
});

/** Deeper than anything that is sent here. A million brackets take JSON.parse half a second. */
const maxDepth = 100;

function isTooDeep(json: string): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (character === '"') while (++at < json.length && json[at] !== '"') at += json[at] === "\\" ? 1 : 0;
    else if (character === "[" || character === "{") depth++;
    else if (character === "]" || character === "}") depth--;
    if (depth > maxDepth) return true;
  }
  return false;
}

/** @throws AppError invalid_request */
export function fromJson(text: string): unknown {
  if (isTooDeep(text)) throw invalid("", `The body is nested more than ${maxDepth} deep`);
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("", "The body is not valid JSON");
  }
}

/**
 * For requests that change something: 415 for a body that is not declared as JSON, 400 for malformed JSON or UTF-8,
 * even if no body is expected: nothing is done for a garbled request. An empty body counts as none, whatever its type.
 */
export const requireJson = createMiddleware<AppEnv>(async (c, next) => {
  const type = c.req.header("Content-Type");
  const text = await textOf(c.req);
  if (text === "") {
    const headers = new Headers(c.req.raw.headers);
    headers.delete("Content-Type");
    c.req.raw = new Request(c.req.url, { method: c.req.method, headers });
  } else if (!/^application\/json\s*(;|$)/i.test(type ?? "")) throw new AppError("unsupported_media_type");
  else fromJson(text);
  await next();
});
