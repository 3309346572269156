import { zValidator } from "@hono/zod-validator";
import type { ValidationTargets } from "hono";
import { bodyLimit } from "hono/body-limit";
import { createMiddleware } from "hono/factory";
import type * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { AppError, invalid } from "../domain/app-error.ts";

type Issue = z.core.$ZodIssue;

/** Of a choice between several forms: what is wrong with the one that was meant, where the keys say which it was. */
function told(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.filter(
    (form) => !form.some(({ code, path }) => code === "unrecognized_keys" && path.length === 0),
  );
  const about = new Set(meant.flatMap((form) => form.map(({ path }) => path[0])));
  if (about.size !== 1 || about.has(undefined)) return [issue];
  return meant.flat().flatMap((one) => told({ ...one, path: [...issue.path, ...one.path] }));
}

/** The one place where a schema's refusal becomes a 400. */
export function refusalBy({ issues }: Pick<z.core.$ZodError, "issues">): AppError {
  const shown = issues.flatMap(told).map(({ path, message }) => ({ path: path.join("."), message }));
  return new AppError("invalid_request", { issues: shown });
}

/** The schema shows on the validator, for whoever lists the routes. */
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

export const maxBodyBytes = 1024 * 1024;

const hearOutMs = 5000;

async function discard(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  // Who sends a byte now and then is not listened to for ever.
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), hearOutMs);
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

/** All of the answer leaves now, told by its length; the exchange is over when `heard` is. */
async function openUntil(heard: Promise<void>, answer: Response): Promise<Response> {
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const { readable, writable } = new FixedLengthStream(bytes.byteLength);
  const writer = writable.getWriter();
  // Who has gone meanwhile hears no answer either.
  const sent = async () => {
    await writer.write(bytes);
    await heard.catch(() => undefined);
    await writer.close();
  };
  void sent().catch(() => undefined);
  return new Response(readable, answer);
}

/**
 * Takes some of what still comes after a refusal: a client that is cut off while it sends sees no answer, only a broken
 * connection. The refusal itself does not wait for that.
 */
export const hearOut = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  const { body } = c.req.raw;
  if (c.res.status >= 400 && body && !body.locked) c.res = await openUntil(discard(body), c.res);
});

/** 413 above 1 MiB, whether or not the length was declared. */
export const limitBody = bodyLimit({
  maxSize: maxBodyBytes,
  onError: () => {
    throw new AppError("payload_too_large");
  },
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * 415 for a body that does not say it is JSON, 400 for one that is not, also where none is asked for: nothing is done at a
 * garbled request. An empty one is none, whatever it says.
 */
export const requireJson = createMiddleware<AppEnv>(async (c, next) => {
  if (c.req.method === "GET" || c.req.method === "HEAD") return next();
  const type = c.req.header("Content-Type");
  const text = await c.req.text();
  if (text === "") {
    const headers = new Headers(c.req.raw.headers);
    headers.delete("Content-Type");
    c.req.raw = new Request(c.req.url, { method: c.req.method, headers });
  } else if (!/^application\/json\s*(;|$)/i.test(type ?? "")) throw new AppError("unsupported_media_type");
  else if (!isJson(text)) throw invalid("", "The body is not valid JSON");
  await next();
});
