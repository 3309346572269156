import http from "node:http";
import type { AddressInfo } from "node:net";
import * as z from "zod";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";

type Schema = {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  format?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minItems?: number;
  minimum?: number;
} & Partial<Record<"anyOf" | "oneOf" | "allOf", Schema[]>>;

const texts: Record<string, string> = {
  "date-time": "2026-11-23T12:00:00.000Z",
  uri: "https://berth.example/x",
  email: "ada@example.com",
};

/** A value of a schema: every field is there, and one item in every list. `bare`: null where that may be. */
function valueOf(schema: Schema, root: Schema, bare = false): unknown {
  if (schema.$ref !== undefined)
    return valueOf(root.$defs?.[schema.$ref.split("/").at(-1) ?? ""] ?? {}, root, bare);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const choices = schema.anyOf ?? schema.oneOf ?? [];
  if (bare && choices.some(({ type }) => type === "null")) return null;
  if (choices[0] !== undefined) return valueOf(choices[0], root, bare);
  if (schema.allOf !== undefined)
    return Object.assign({}, ...schema.allOf.map((one) => valueOf(one, root, bare) as object)) as object;
  switch (schema.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, inner]) => [
          name,
          name === "nextCursor" ? null : valueOf(inner, root, bare),
        ]),
      );
    case "array":
      return schema.items === undefined ? [] : bare ? [] : [valueOf(schema.items, root)];
    case "boolean":
      return true;
    case "integer":
    case "number":
      return Math.max(schema.minimum ?? 0, 1);
    case "string":
      return texts[schema.format ?? ""] ?? "text";
    case undefined:
    default:
      return null;
  }
}

const all = Object.entries({ ...operations, ...entryOperations } as Record<string, Operation>);

/** What an operation answers to this body, as its schema says. */
export function answerOf(id: string, body: object = {}): { status: number; value: unknown } {
  const operation = all.find(([name]) => name === id)?.[1];
  const entry =
    operation?.answers.find((one) => one.with !== undefined && one.with in body) ??
    operation?.answers.find((one) => one.with === undefined);
  if (entry === undefined) throw new Error(`${id} has no answer`);
  const schema = z.toJSONSchema(entry.schema, { unrepresentable: "any" }) as Schema;
  const example = operation?.answers.length === 1 ? operation.examples?.answer : undefined;
  if (example !== undefined) return { status: entry.status, value: example };
  const full = valueOf(schema, schema);
  // Some texts have a form that a schema does not tell.
  const value = entry.schema.safeParse(full).success ? full : valueOf(schema, schema, true);
  return { status: entry.status, value };
}

export type Asked = {
  id: string;
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  body: string;
};
export type Service = {
  url: string;
  asked: Asked[];
  /** Whether the connection breaks after this request has arrived, in place of an answer. */
  cut: (asked: Asked) => boolean;
  /** Fields of the answer to this request. */
  instead: (asked: Asked) => object | undefined;
  /** What every operation answers in place of its own answer. */
  refusal: (asked: Asked) => { status: number; body: object; headers?: Record<string, string> } | undefined;
  /** The clock of the service, as its Date header says; undefined: the right one. */
  date: string | undefined;
  files: Record<string, Buffer>;
  close: () => Promise<void>;
};

/**
 * Every operation of the API at its address: it refuses what the operation's schemas refuse, as the service does, and
 * answers a value of the answer's schema, with `changes` in it.
 */
export async function answeringService(
  changes: Record<string, object> = {},
  files: Record<string, Buffer> = {},
): Promise<Service> {
  const asked: Asked[] = [];
  const find = (method: string, path: string) =>
    all.find(
      ([, one]) =>
        one.method.toUpperCase() === method &&
        new RegExp(
          `^${one.at === undefined ? "/api/v1" : ""}${one.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`,
        ).test(path),
    );
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      const url = new URL(request.url ?? "", "http://berth.example");
      const method = request.method ?? "";
      const [id, operation] = find(method, url.pathname) ?? [];
      asked.push({ id: id ?? "", method, url: request.url ?? "", headers: request.headers, body });
      const send = (status: number, value: unknown) =>
        response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
      if (service.date !== undefined) response.setHeader("Date", service.date);
      const file = service.files[url.pathname];
      if (file !== undefined) return response.writeHead(200).end(file);
      if (service.cut(asked.at(-1)!)) return request.socket.destroy();
      const refusal = service.refusal(asked.at(-1)!);
      if (refusal)
        return response
          .writeHead(refusal.status, { "Content-Type": "application/json", ...refusal.headers })
          .end(JSON.stringify(refusal.body));
      if (id === undefined || operation === undefined) return send(404, { error: "Not found" });
      const given = body === "" ? undefined : (JSON.parse(body) as object);
      const refused = [
        operation.query?.safeParse(Object.fromEntries(url.searchParams)),
        operation.body === undefined || (given === undefined && operation.optionalBody)
          ? undefined
          : operation.body.safeParse(given),
      ].flatMap((result) => result?.error?.issues ?? []);
      if (refused.length > 0) {
        const issues = refused.map((one) => ({ path: one.path.join("."), message: one.message }));
        return send(400, { error: "invalid_request", issues });
      }
      if (operation.file !== undefined)
        return response.writeHead(200, { "Content-Type": operation.file }).end(Buffer.from([0, 255, 10, 13]));
      const { status, value } = answerOf(id, given);
      const changed = { ...(value as object), ...changes[id], ...service.instead(asked.at(-1)!) };
      if (operation.streams && request.headers.accept === "text/event-stream") {
        const lines = (changed as { data?: unknown[] }).data ?? [];
        const events =
          id === "chatStream"
            ? "error" in changed
              ? [{ event: "error", data: changed }]
              : [
                  { event: "conversation", data: { conversationId: "conv_001m80000000000000000000000" } },
                  ...((changed as { deltas?: string[] }).deltas ?? []).map((text) => ({
                    event: "delta",
                    data: { text },
                  })),
                  ...("isCut" in changed
                    ? []
                    : [
                        {
                          event: "done",
                          data: { ...(answerOf("chat").value as object), ...service.instead(asked.at(-1)!) },
                        },
                      ]),
                ]
            : id === "followEvents"
              ? [
                  { event: "ready", data: {} },
                  { event: "change", data: changed },
                ]
              : [
                  ...lines.map((data) => ({ event: "line", data })),
                  ...(id === "getSiteLogs" ? [] : [{ event: "end", data: {} }]),
                ];
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.write(
          events.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join(""),
        );
        // What a running site does has no end.
        if (!["followEvents", "getSiteLogs", "getDatabaseLogs"].includes(id)) response.end();
        return;
      }
      return send(status, changed);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const service: Service = {
    cut: () => false,
    instead: () => undefined,
    refusal: () => undefined,
    date: undefined,
    files,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}
