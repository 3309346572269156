import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, expectTypeOf, it, vi } from "vitest";
import {
  ApiError,
  createClient,
  NetworkError,
  operationNamed,
  requestOf,
  type Answer,
  type ServerEvent,
} from "../../client/index.ts";
import type { SiteInFull } from "../../protocol/api/sites.ts";

type Handler = (request: http.IncomingMessage, response: http.ServerResponse, body: string) => void;
let server: http.Server | undefined;

/** A service that answers the n-th request by the n-th handler, the last one from then on. */
async function serving(
  ...handlers: Handler[]
): Promise<{ url: string; seen: { headers: http.IncomingHttpHeaders; line: string; body: string }[] }> {
  const seen: { headers: http.IncomingHttpHeaders; line: string; body: string }[] = [];
  const made = (server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      const handler = handlers[Math.min(seen.length, handlers.length - 1)];
      seen.push({ headers: request.headers, line: `${request.method} ${request.url}`, body });
      handler?.(request, response, body);
    });
  }));
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(made.address() as AddressInfo).port}`, seen };
}
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

const json =
  (status: number, value: unknown, headers: Record<string, string> = {}): Handler =>
  (_, response) =>
    void response
      .writeHead(status, { "Content-Type": "application/json", ...headers })
      .end(JSON.stringify(value));
const cut: Handler = (request) => void request.socket.destroy();
const events =
  (text: string, isCut = false): Handler =>
  (request, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(text, () => (isCut ? request.socket.destroy() : response.end()));
  };

const clientFor = (url: string, token: string | null = "sk_test") =>
  createClient({ siteUrl: url, ...(token !== null && { token }) });

it("puts parameters into the path and the query, and the rest into the body", () => {
  expect(requestOf("https://b.example", "getDeploymentLogs", { id: "a/b?c", limit: 5, cursor: 2 })).toEqual({
    method: "GET",
    url: "https://b.example/api/v1/deployments/a%2Fb%3Fc/logs?limit=5&cursor=2",
  });
  expect(requestOf("https://b.example", "patchSite", { id: "site_1", action: "stop" })).toEqual({
    method: "PATCH",
    url: "https://b.example/api/v1/sites/site_1",
    body: '{"action":"stop"}',
  });
  expect(requestOf("https://b.example", "getHealth", {}).url).toBe("https://b.example/health");
  expect(requestOf("https://b.example", "rollbackSite", { id: "site_1" })).not.toHaveProperty("body");
});

it.each(["", ".", ".."])("refuses %j as a part of a path, which would name another resource", (id) => {
  expect(() => requestOf("https://b.example", "deleteSite", { id })).toThrow("needs id");
});

it("finds an operation by its id and by its path with a method", () => {
  expect(operationNamed("listSites", "GET")).toMatchObject({ id: "listSites" });
  expect(operationNamed("/sites/site_1", "delete")).toMatchObject({
    id: "deleteSite",
    params: { id: "site_1" },
  });
  expect(operationNamed("/api/v1/invoices/invoice_1", "GET")).toMatchObject({ id: "getInvoice" });
  expect(operationNamed("/nothing", "GET")).toBeUndefined();
});

it("types the answer by the operation and by what was asked of it", async () => {
  const { url } = await serving(json(202, { id: "site_1", status: "DEPLOYING", deploymentId: "dep_1" }));
  const client = clientFor(url);
  const accepted = await client.call("patchSite", { id: "site_1", action: "deploy" });
  expectTypeOf(accepted.deploymentId).toEqualTypeOf<string | undefined>();
  expectTypeOf<Answer<"getSite">>().toEqualTypeOf<SiteInFull>();
  // @ts-expect-error -- a word that is no action
  client.call("patchSite", { id: "site_1", action: "explode" }).catch(() => undefined);
  // @ts-expect-error -- no id
  client.call("getSite", {}).catch(() => undefined);
  expect(accepted).toEqual({ id: "site_1", status: "DEPLOYING", deploymentId: "dep_1" });
});

it("a change that is cut off is repeated with the same Idempotency-Key, also while the first is still running", async () => {
  const { url, seen } = await serving(
    cut,
    json(409, {
      error: "conflict",
      reason: "The first request with this Idempotency-Key is still in progress.",
    }),
    json(201, { siteId: "site_1", invoiceId: "invoice_1", invoiceToken: "inv_1" }),
  );
  const created = await clientFor(url).call("createSite", { deployType: "image", name: "a", image: "nginx" });
  expect(created.siteId).toBe("site_1");
  expect(seen).toHaveLength(3);
  expect(new Set(seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  expect(seen[0]?.headers["idempotency-key"]).toMatch(/^[\w-]{30,}$/);
});

it("two calls have keys of their own, and reads have none", async () => {
  const { url, seen } = await serving(json(200, { id: "x" }));
  const client = clientFor(url);
  await client.call("cancelCommand", { id: "cmd_1" });
  await client.call("cancelCommand", { id: "cmd_1" });
  await client.call("getSite", { id: "site_1" });
  const keys = seen.map(({ headers }) => headers["idempotency-key"]);
  expect(keys[0]).not.toBe(keys[1]);
  expect(keys[2]).toBeUndefined();
});

it("a change without a key, which the service cannot recognize, is sent once", async () => {
  const { url, seen } = await serving(cut);
  await expect(clientFor(url, null).call("startDevice", {})).rejects.toThrow(NetworkError);
  expect(seen).toHaveLength(1);
});

const refusing: Handler = (request, response) => {
  server?.close();
  cut(request, response, "");
};
it.each<[string, Handler[], "startDevice" | "getHealth", boolean]>([
  ["a change whose connection breaks once it was sent", [cut], "startDevice", true],
  ["a read whose connection breaks", [cut], "getHealth", false],
  [
    "a change for which a gateway answers that it waited too long",
    [(_, response) => void response.writeHead(504).end("<html>")],
    "startDevice",
    true,
  ],
  [
    "a change whose answer ends early",
    [(_, response) => void response.writeHead(200, { "Content-Length": 9 }).end("{")],
    "startDevice",
    true,
  ],
])("%s: the error says whether it may be done", async (_, handlers, id, mayBeDone) => {
  const { url } = await serving(...handlers);
  const asked = createClient({ siteUrl: url, retries: 0 }).call(id, {});
  await expect(asked).rejects.toBeInstanceOf(NetworkError);
  await expect(asked).rejects.toMatchObject({ mayBeDone });
});

it("a change that nobody took may not be done, but one that was cut and then finds nobody may", async () => {
  const { url } = await serving(refusing);
  const input = { deployType: "image", name: "a", image: "nginx" } as const;
  const client = createClient({ siteUrl: url, token: "sk_test", retries: 1 });
  const cutAndGone = client.call("createSite", input);
  await expect(cutAndGone).rejects.toMatchObject({
    mayBeDone: true,
    message: expect.stringContaining("did not answer"),
  });
  await expect(client.call("createSite", input)).rejects.toMatchObject({
    mayBeDone: false,
    message: expect.stringContaining("cannot be reached"),
  });
});

it("a service that accepts the connection and never answers is not waited for without end, nor asked again", async () => {
  const { url, seen } = await serving(() => undefined);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const asked = clientFor(url).call("createSite", { deployType: "image", name: "a", image: "nginx" });
  const refused = expect(asked).rejects.toMatchObject({
    name: "NetworkError",
    mayBeDone: true,
    message: `${url} did not answer within 4 minutes.`,
  });
  await vi.waitUntil(() => seen.length === 1);
  await vi.advanceTimersByTimeAsync(240_000);
  vi.useRealTimers();
  await refused;
  expect(seen).toHaveLength(1);
});

it("an answer that has begun may take as long as it takes", async () => {
  const { promise, resolve } = Promise.withResolvers<http.ServerResponse>();
  const { url } = await serving((_, response) => {
    response.writeHead(200).write("first ");
    resolve(response);
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const file = await clientFor(url).file({ url: `${url}/file` });
  await vi.advanceTimersByTimeAsync(600_000);
  vi.useRealTimers();
  (await promise).end("last");
  expect(await file.text()).toBe("first last");
});

it("a real conflict is refused at once", async () => {
  const { url, seen } = await serving(
    json(409, { error: "conflict", reason: "There is a site with this name." }),
  );
  const refused = clientFor(url).call("createSite", { deployType: "image", name: "a", image: "nginx" });
  await expect(refused).rejects.toMatchObject({
    code: "conflict",
    status: 409,
    message: "There is a site with this name.",
  });
  expect(seen).toHaveLength(1);
});

it("waits as long as Retry-After says, and says so", async () => {
  const limited = json(429, { error: "rate_limited" }, { "Retry-After": "1" });
  const { url, seen } = await serving(limited, json(200, { data: [], nextCursor: null }));
  const waits: [string, number][] = [];
  const client = createClient({ siteUrl: url, token: "sk_test", onWait: (...wait) => waits.push(wait) });
  await client.call("listSites", {});
  expect(seen).toHaveLength(2);
  expect(waits).toEqual([["rate_limited", expect.closeTo(1125, -3)]]);
  expect(waits[0]?.[1]).toBeGreaterThanOrEqual(1000);
});

it("gives up where the waits would take too long", async () => {
  const { url, seen } = await serving(json(429, { error: "rate_limited" }, { "Retry-After": "3600" }));
  await expect(clientFor(url).call("listSites", {})).rejects.toMatchObject({
    code: "rate_limited",
    retryAfterSeconds: 3600,
  });
  expect(seen).toHaveLength(1);
});

it.each([
  [401, { error: "unauthorized" }, "unauthorized", "unauthorized"],
  [404, { error: "Not found" }, "not_found", "Not found"],
  [
    400,
    {
      error: "invalid_request",
      issues: [
        { path: "name", message: "too long" },
        { path: "", message: "odd" },
      ],
    },
    "invalid_request",
    "name: too long; odd",
  ],
  [418, { error: "of a newer service" }, "invalid_request", "invalid_request"],
  [500, { error: "server_error", requestId: "r1" }, "server_error", "server_error"],
])("an answer of %s is the error that protocol/errors.ts names", async (status, body, code, message) => {
  const { url } = await serving(json(status, body));
  const refused = clientFor(url).call("getSite", { id: "site_1" });
  await expect(refused).rejects.toBeInstanceOf(ApiError);
  await expect(refused).rejects.toMatchObject({ code, message, status });
});

it("an answer that is not of this service is said to be none, and a redirect is not followed with the key", async () => {
  const html: Handler = (_, response) => void response.writeHead(404).end("<html>");
  const { url } = await serving(html);
  await expect(clientFor(url).call("listSites", {})).rejects.toThrow("is not a Berth service");
  server?.close();
  const moved: Handler = (_, response) =>
    void response.writeHead(302, { Location: "http://127.0.0.1:9/" }).end();
  const other = await serving(moved);
  await expect(clientFor(other.url).call("listSites", {})).rejects.toThrow(NetworkError);
  expect(other.seen).toHaveLength(1);
});

it.each(["text", "call", "file", "link"] as const)(
  "a page with status 200, such as a proxy's, is no answer of the service: %s",
  async (how) => {
    const page: Handler = (_, response) =>
      void response
        .writeHead(200, { "Content-Type": "text/html; charset=utf-8" })
        .end("<html>Sign in</html>");
    const { url } = await serving(page);
    const client = clientFor(url);
    const asked = {
      text: () => client.text("listSites", {}),
      call: () => client.call("listSites", {}),
      file: () => client.file({ id: "getInvoicePdf", input: { token: "inv_1" } }),
      link: () => client.file({ url: `${url}/backups/bak_1/download?signature=s3cret` }),
    }[how]();
    await expect(asked).rejects.toBeInstanceOf(NetworkError);
    await expect(asked).rejects.toThrow(`${url}/`);
    await expect(asked).rejects.not.toThrow("s3cret");
  },
);

it("the key is not sent to the address of a file on another server", async () => {
  const { url, seen } = await serving(json(200, {}));
  await createClient({ siteUrl: "http://127.0.0.1:9", token: "sk_test" }).file({ url: `${url}/file` });
  expect(seen[0]?.headers.authorization).toBeUndefined();
});

it("a stream that is cut off goes on after the last event, and ends with `end`", async () => {
  const { url, seen } = await serving(
    events(
      "id: 1\nevent: line\ndata: one\n\n: beat\n\nid: 2\nevent: line\ndata: two\n\nid: 3\nevent: li",
      true,
    ),
    events("id: 3\nevent: line\ndata: three\n\nevent: end\ndata: {}\n\n"),
  );
  const got: ServerEvent[] = [];
  for await (const event of clientFor(url).stream("getDeploymentLogs", { id: "dep_1" })) got.push(event);
  expect(got.map(({ event, data }) => `${event} ${data}`)).toEqual([
    "line one",
    "line two",
    "line three",
    "end {}",
  ]);
  expect(seen.map(({ line, headers }) => [line, headers["last-event-id"]])).toEqual([
    ["GET /api/v1/deployments/dep_1/logs?follow=1", undefined],
    ["GET /api/v1/deployments/dep_1/logs?follow=1", "2"],
  ]);
});

it("a stream whose key has been revoked ends with that", async () => {
  const { url } = await serving(
    events("id: 1\nevent: line\ndata: one\n\n"),
    json(401, { error: "unauthorized" }),
  );
  const got: string[] = [];
  const reading = (async () => {
    for await (const { data } of clientFor(url).stream("getSiteLogs", { id: "site_1" })) got.push(data);
  })();
  await expect(reading).rejects.toMatchObject({ code: "unauthorized" });
  expect(got).toEqual(["one"]);
});

it("a message that is streamed is not sent again", async () => {
  const { url, seen } = await serving(events("id: 1\nevent: delta\ndata: {}\n\n", true));
  const reading = (async () => {
    for await (const _ of clientFor(url).stream("chatStream", { message: "hi" }, { end: ["done", "error"] }))
      void _;
  })();
  await expect(reading).rejects.toThrow(NetworkError);
  expect(seen).toHaveLength(1);
});

it("an abort ends a wait, a request and a stream at once with its reason", async () => {
  const reason = new Error("enough");
  const silent: Handler = () => undefined;
  const { url } = await serving(silent);
  const stop = new AbortController();
  const asked = clientFor(url).call("listSites", {}, { signal: stop.signal });
  await expect.poll(() => server?.listening).toBe(true);
  stop.abort(reason);
  await expect(asked).rejects.toBe(reason);
  server?.closeAllConnections();
  server?.close();
  const limited = await serving(json(429, { error: "rate_limited" }, { "Retry-After": "60" }));
  const second = new AbortController();
  const waiting = createClient({
    siteUrl: limited.url,
    token: "sk_test",
    onWait: () => second.abort(reason),
  }).call("listSites", {}, { signal: second.signal });
  await expect(waiting).rejects.toBe(reason);
});

it.each([
  ["createSite", { name: "shop" }, 1],
  ["listSites", {}, 0],
] as const)(
  "whoever stops waiting for %s hears whether it may be done all the same",
  async (id, input, times) => {
    const { url, seen } = await serving(() => undefined);
    const stop = new AbortController();
    let abandoned = 0;
    const client = createClient({ siteUrl: url, token: "sk_test", onAbandoned: () => abandoned++ });
    const asked = client.call(id, input as never, { signal: stop.signal });
    await expect.poll(() => seen.length).toBe(1);
    stop.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    expect(abandoned).toBe(times);
  },
);

it("all items of a list are read page by page", async () => {
  const { url, seen } = await serving(
    json(200, { data: [{ id: "a" }], nextCursor: "site_2" }),
    json(200, { data: [{ id: "b" }], nextCursor: null }),
  );
  const ids: string[] = [];
  for await (const { id } of clientFor(url).items("listSites", { limit: 1 })) ids.push(id);
  expect(ids).toEqual(["a", "b"]);
  expect(seen[1]?.line).toBe("GET /api/v1/sites?limit=1&cursor=site_2");
});
