import * as z from "zod";
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from "zod-openapi";
import { ErrorBody } from "../protocol/api/common.ts";
import { entryOperations } from "../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../protocol/api/operations.ts";
import { errorCatalogue, type ErrorCode } from "../protocol/errors.ts";
import { version } from "./version.ts";

/** All that the document has. */
export const documented: Record<string, Operation> = { ...operations, ...entryOperations };

const meanings: Record<ErrorCode, string> = {
  invalid_request: "The body, a parameter or the query is invalid; `issues` says where and why",
  unauthorized: "No key or session, or an unknown one",
  payment_required: "A payment is due; `invoiceToken` if one invoice would settle it",
  forbidden: "The resource is not the caller's; otherwise `reason` says why",
  not_found: "There is no such resource",
  conflict: "The state does not allow this; `reason` says why",
  payload_too_large: "The body is larger than 1 MiB",
  unsupported_media_type: "The body is not declared as application/json",
  idempotency_mismatch: "The Idempotency-Key was used with another query or body",
  rate_limited: "Over the limit; wait `Retry-After` seconds",
  server_error: "Our fault; `requestId` finds it in the log",
  not_implemented: "This installation cannot do that yet",
};

const needsNoKey = ({ access }: Operation): boolean => access === "none" || access === "own";

/** What an operation may refuse, from what it asks for. */
export function refusalsOf(operation: Operation): ErrorCode[] {
  // Any change of the API proper may be sent with a body, if only an empty object.
  const takesBody =
    operation.body !== undefined || (operation.method !== "get" && operation.at === undefined);
  const codes: ErrorCode[] = [
    ...(operation.refusals ?? []),
    "invalid_request",
    "rate_limited",
    "server_error",
  ];
  // A key that does not work is refused also where none is needed.
  if (operation.at === undefined) codes.push("unauthorized");
  if (operation.path.includes("{id}")) codes.push("not_found");
  if (!needsNoKey(operation) && (operation.path.includes("{id}") || operation.access !== "key"))
    codes.push("forbidden");
  if (takesBody) codes.push("payload_too_large", "unsupported_media_type");
  if (operation.anyBody) codes.push("payload_too_large");
  if (operation.method !== "get" && !needsNoKey(operation)) {
    if (!codes.includes("conflict")) codes.push("conflict");
    codes.push("idempotency_mismatch");
  }
  if (operation.method !== "get" && operation.access === "key") codes.push("forbidden");
  return [...new Set(codes)].toSorted((a, b) => errorCatalogue[a].status - errorCatalogue[b].status);
}

const idempotencyKey = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "A request repeated with the same key has one effect and one response, for a day. One that was refused had no effect: the key may be used again.",
    ),
});
const lastEventId = z.object({
  "Last-Event-ID": z
    .string()
    .optional()
    .describe("In a stream: resume after this event, as browsers do automatically."),
});

const range = z.object({
  Range: z
    .string()
    .optional()
    .describe("Such as `bytes=0-1023`: one range; otherwise the whole file is returned."),
});

const json = (schema: z.ZodType, example?: unknown) => ({
  "application/json": { schema, ...(example !== undefined && { example }) },
});

/** What an operation asks for beside the credentials in addresses and bodies. */
function securityOf({ access, bearer }: Operation): Record<string, []>[] {
  if (bearer) return [{ [bearer]: [] }];
  if (access === "none" || access === "own") return [];
  return access === "session" ? [{ session: [] }] : [{ key: [] }, { session: [] }];
}

function headersOf(operation: Operation) {
  if (operation.ranges) return range;
  if (operation.method !== "get") return needsNoKey(operation) ? undefined : idempotencyKey;
  return operation.streams && lastEventId;
}

function describe(operationId: string, operation: Operation): ZodOpenApiOperationObject {
  const responses: ZodOpenApiResponsesObject = {};
  for (const { status, schema, when } of operation.answers) {
    const isExampled = operation.answers.at(-1)?.status === status;
    responses[`${status}`] = {
      description: when ?? (status === 202 ? "Accepted" : status === 201 ? "Created" : "OK"),
      content: operation.file
        ? { [operation.file]: { schema } }
        : {
            ...json(schema, isExampled ? operation.examples?.answer : undefined),
            ...(operation.streams && { "text/event-stream": { schema: z.string() } }),
          },
    };
  }
  if (operation.ranges)
    responses["416"] = {
      description: "The file has no such range",
      content: json(ErrorBody, { error: "range_not_satisfiable" }),
    };
  for (const code of refusalsOf(operation))
    responses[`${errorCatalogue[code].status as 400}`] = { $ref: `#/components/responses/${code}` };
  const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, z.string()]);
  const path = inPath.length > 0 && z.object(Object.fromEntries(inPath) as Record<string, z.ZodString>);
  const header = headersOf(operation);
  return {
    operationId,
    summary: operation.summary,
    tags: [operation.tag],
    "x-access": operation.access,
    security: securityOf(operation),
    requestParams: {
      ...(path && { path }),
      ...(operation.query && { query: operation.query }),
      ...(header && { header }),
    },
    ...(operation.body && {
      requestBody: {
        required: !operation.optionalBody,
        content: json(operation.body, operation.examples?.body),
      },
    }),
    responses,
  };
}

/** The OpenAPI 3.1 document, made of the very schemas that validate. */
export function openApiDocument(config: { SITE_URL: string; WEBHOOK_HOST: string }) {
  const servers = {
    api: [{ url: `${config.SITE_URL}/api/v1` }],
    site: [{ url: config.SITE_URL }],
    webhook: [{ url: config.WEBHOOK_HOST }],
  };
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [id, operation] of Object.entries(documented)) {
    const path = (paths[operation.path] ??= operation.at ? { servers: servers[operation.at] } : {});
    path[operation.method] = describe(id, operation);
  }
  return createDocument(
    {
      openapi: "3.1.0",
      info: {
        title: "Berth",
        version,
        description:
          "Hosting of sites and databases in containers. Responses are JSON, except event streams and files, and carry `X-Request-Id`. Every error has a string field `error`, one for each status: a code such as `conflict`, or `Not found` for 404. Lists with `nextCursor` take `limit` and `cursor`, and are newest first unless their summary says otherwise. A key may make 60 requests in any 60 seconds, including those that need no key. Parameters that an endpoint does not name are refused.",
      },
      servers: servers.api,
      tags: [...new Set(Object.values(documented).map(({ tag }) => tag))].map((name) => ({ name })),
      paths,
      components: {
        securitySchemes: {
          key: { type: "http", scheme: "bearer", description: "An API key: `Authorization: Bearer sk_…`" },
          setupToken: { type: "http", scheme: "bearer", description: "The installation's SETUP_TOKEN" },
          session: {
            type: "apiKey",
            in: "cookie",
            name: config.SITE_URL.startsWith("https:") ? "__Host-berth_session" : "berth_session",
            description: "A signed-in browser; changes require the service's own Origin",
          },
        },
        responses: Object.fromEntries(
          Object.entries(meanings).map(([code, description]) => [
            code,
            {
              description,
              content: json(ErrorBody, { error: errorCatalogue[code as ErrorCode].text }),
            },
          ]),
        ),
      },
    },
    {
      override({ zodSchema, jsonSchema }) {
        const { def } = zodSchema._zod;
        // Zod leaves the default out of what a transform reads from text.
        if (def.type === "default") jsonSchema.default ??= def.defaultValue;
        // An escaped slash is JavaScript's alone: some generators escape it again.
        jsonSchema.pattern &&= jsonSchema.pattern.replaceAll(/\\(.)/g, (all, escaped) =>
          escaped === "/" ? "/" : all,
        );
      },
    },
  );
}
