import * as z from "zod";
import { describe, expect, it, vi } from "vitest";
import { ErrorBody } from "../../protocol/api/common.ts";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import type { Operation } from "../../protocol/api/operations.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { app } from "../../worker/app.ts";
import { documented, refusalsOf } from "../../worker/openapi.ts";
import { call, createSite, operator, operatorLogin, siteUrl } from "./service.ts";

const { email, password } = operatorLogin;

type Tagged = { target?: "json" | "query"; schema?: z.ZodType };
type Media = { schema: unknown; example?: unknown };
type Document = {
  openapi: string;
  paths: Record<string, Record<string, { responses: Record<string, { content: Record<string, Media> }> }>>;
};

const all = Object.entries(documented);
const below = { site: "", webhook: "", api: "/api/v1" } as const;
const mountPath = ({ path, at }: Operation) => below[at ?? "api"] + path.replaceAll(/\{(\w+)\}/g, ":$1");
const methods = new Set(["GET", "POST", "PATCH", "PUT", "DELETE"]);
/** Below it, better-auth has its own routes. */
const isAuth = (path: string) => path.startsWith("/api/auth/");
/** Not the API: pages for people, their forms, and what the agent uses. */
const isApi = (path: string) =>
  (/^\/(api\/v1|webhooks|health|setup|backups)(\/|$)/.test(path) ||
    /^\/invoice\/:token(\/pay|\/pdf)?$/.test(path)) &&
  !path.includes("*");

/** WebSockets, which OpenAPI cannot describe (docs/manual/streams.md). */
const isStream = (path: string) => /\/(?:tunnel|terminal)$/.test(path);
const mounted = () =>
  app.routes.filter(({ method, path }) => methods.has(method) && isApi(path) && !isStream(path));

describe("the OpenAPI document", () => {
  it("documents the very routes that are mounted, no more and no less", () => {
    const routes = new Set(mounted().map(({ method, path }) => `${method} ${path}`));
    const told = all
      .map(([, one]) => ({ method: one.method.toUpperCase(), path: mountPath(one) }))
      .filter(({ path }) => !isAuth(path));
    expect([...routes].toSorted()).toEqual(told.map(({ method, path }) => `${method} ${path}`).toSorted());
  });

  it.each(all.filter(([, { path }]) => !isAuth(path)))(
    "%s validates with the schemas it documents",
    (_, operation) => {
      const handlers = mounted().filter(
        ({ method, path }) => method === operation.method.toUpperCase() && path === mountPath(operation),
      );
      const schemaOf = (target: "json" | "query") =>
        handlers.map(({ handler }) => handler as Tagged).find((one) => one.target === target)?.schema;
      expect(schemaOf("json")).toBe(operation.body);
      expect(schemaOf("query")).toBe(operation.query);
    },
  );

  it.each(all.filter(([, { examples }]) => examples))("%s has examples that validate", (_, operation) => {
    const { body, answer } = operation.examples ?? {};
    if (body !== undefined) expect(operation.body?.safeParse(body).error).toBeUndefined();
    if (answer !== undefined)
      expect(operation.answers.at(-1)?.schema.safeParse(answer).error).toBeUndefined();
  });

  it("is served without credentials, resolves every reference, and names each operation once", async () => {
    const response = await call("/api/v1/openapi.json");
    const text = await response.text();
    const document = JSON.parse(text) as Document;
    expect([response.status, document.openapi]).toEqual([200, "3.1.0"]);
    for (const [, reference = ""] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      let found: unknown = document;
      for (const part of reference.split("/")) found = (found as Record<string, unknown> | undefined)?.[part];
      expect(found, reference).toBeDefined();
    }
    // As clients of any language read them.
    for (const [, pattern = ""] of text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)) {
      const read = JSON.parse(pattern) as string;
      expect(read).not.toContain("\\p{");
      expect(() => new RegExp(read)).not.toThrow();
      // Generators write them between slashes: some escape an escaped slash again, some write U+2028 itself, a line's end.
      expect(read.replaceAll("\\\\", "")).not.toMatch(/\\\/|\\u202[89]/);
    }
    const ids = [...text.matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
    expect(new Set(ids)).toEqual(new Set(Object.keys(documented)));
    expect(ids.length).toBe(all.length);
  });

  it("says what parameters and fields mean, and so does the page: how a log is followed and gone on with", async () => {
    const document = await (
      await call("/api/v1/openapi.json")
    ).json<{
      paths: Record<string, { get: { parameters: { name: string; description?: string }[] } }>;
    }>();
    const page = await (await call("/docs")).text();
    for (const [id, operation] of all) {
      if (!operation.streams || operation.query === undefined) continue;
      const { parameters } = document.paths[operation.path]?.get ?? { parameters: [] };
      const told = Object.fromEntries(parameters.map(({ name, description }) => [name, description]));
      expect([id, told]).toMatchObject([
        id,
        {
          ...("follow" in operation.query.shape && {
            follow: expect.stringContaining("server-sent events") as string,
          }),
          "Last-Event-ID": expect.stringContaining("resume after this event"),
        },
      ]);
    }
    for (const said of [
      "resume after this event",
      "Number of lines from the end of the log.",
      "null removes the variable.",
    ])
      expect(page).toContain(said);
  });

  it("describes whole numbers as such, with their bounds and defaults", async () => {
    const document = await (
      await call("/api/v1/openapi.json")
    ).json<{ paths: Record<string, { get: { parameters: { name: string; schema: object }[] } }> }>();
    const limit = document.paths["/sites"]?.get.parameters.find(({ name }) => name === "limit")?.schema;
    expect(limit).toEqual({ type: "integer", minimum: 1, maximum: 100, default: 50 });
  });

  it("names the fields that errors have beside their text, so that generated clients can read them", async () => {
    const { invoiceToken } = await createSite(await operator());
    const { components } = await (
      await call("/api/v1/openapi.json")
    ).json<{ components: { schemas: Record<string, { properties: Record<string, object> }> } }>();
    expect(components.schemas["ErrorBody"]?.properties).toMatchObject({
      error: { type: "string" },
      reason: { type: "string" },
      issues: { items: { properties: { path: { type: "string" }, message: { type: "string" } } } },
      invoiceToken: { type: "string" },
      requestId: { type: "string" },
    });
    const refused = await call(`/invoice/${invoiceToken}?unknown=1`);
    expect(ErrorBody.parse(await refused.json()).issues).toEqual([
      { path: "unknown", message: expect.any(String) as string },
    ]);
  });

  it("requires no field of an answer that its replay omits", () => {
    const omitting = all.filter(([, { access, shownOnce }]) => shownOnce && access !== "none");
    expect(omitting.map(([id]) => id)).toContain("createNotificationChannel");
    for (const [id, { answers, shownOnce = [] }] of omitting)
      for (const { schema } of answers) {
        const { required = [] } = z.toJSONSchema(schema);
        expect([id, required.filter((name) => shownOnce.includes(name))]).toEqual([id, []]);
      }
  });

  it("names every refusal that any request of the kind may get", () => {
    for (const [id, operation] of all) {
      const changes = operation.method !== "get" && operation.at === undefined;
      expect([id, refusalsOf(operation)]).toEqual([
        id,
        expect.arrayContaining([
          "invalid_request",
          ...(changes ? ["payload_too_large", "unsupported_media_type"] : []),
        ]),
      ]);
    }
  });

  it("has a JSON error for a range that a file does not have", async () => {
    const document = await (await call("/api/v1/openapi.json")).json<Document>();
    const { responses } = document.paths["/backups/{id}/download"]!["get"]!;
    expect(responses["416"]?.content["application/json"]?.example).toEqual({
      error: "range_not_satisfiable",
    });
  });

  it("is readable as a page with nothing from elsewhere", async () => {
    const response = await call("/docs");
    const html = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get("Content-Security-Policy")).toContain("default-src 'none'");
    expect(html).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    for (const [id] of all) expect(html).toContain(`id="${id}"`);
  });
});

/** As a client without a browser's headers calls it. */
async function enter(id: keyof typeof entryOperations, address: string, body?: object, cookie = "") {
  const operation: Operation = entryOperations[id];
  const response = await call(address, {
    method: operation.method.toUpperCase(),
    headers: {
      ...(body && { "Content-Type": "application/json" }),
      ...(cookie !== "" && { Cookie: cookie, Origin: siteUrl }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answered: unknown = await response.json();
  const schema = operation.answers.find(({ status }) => status === response.status)?.schema;
  expect([id, response.status, schema?.safeParse(answered).error]).toEqual([id, response.status, undefined]);
  const names = refusalsOf(operation).map((code) => errorCatalogue[code].status as number);
  expect([...names, ...operation.answers.map(({ status }) => status as number)]).toContain(response.status);
  return {
    status: response.status,
    cookie: response.headers.get("Set-Cookie")?.split(";")[0] ?? "",
    answered,
  };
}

describe("what has a credential of its own", () => {
  it("answers sign-up, sign-in and password resets as documented", async () => {
    await operator();
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => Response.json({}));
    const auth = (id: keyof typeof entryOperations, body?: object, cookie?: string) =>
      enter(id, entryOperations[id].path, body, cookie);
    const strange = { name: "Ada", email: "entering@example.com", password };
    expect((await auth("signUp", strange)).status).toBe(200);
    expect((await auth("signIn", { email, password: "a wrong password" })).status).toBe(401);
    const { status, cookie } = await auth("signIn", { email, password });
    expect(status).toBe(200);
    expect((await auth("getSession", undefined, cookie)).answered).toMatchObject({ user: { email } });
    expect((await auth("requestPasswordReset", { email: strange.email })).status).toBe(200);
    expect((await auth("resetPassword", { token: "none", newPassword: password })).status).toBe(400);
    expect((await auth("signOut", {}, cookie)).status).toBe(200);
    expect((await auth("getSession", undefined, cookie)).answered).toBeNull();
  });

  it.each(Object.values<Operation>(entryOperations))(
    "refuses a parameter that $method $path does not name",
    async ({ method, path, body }) => {
      const address = path.replaceAll(/\{\w+\}/g, "none");
      const response = await call(`${address}?unknown=1`, {
        method: method.toUpperCase(),
        ...(body && { headers: { "Content-Type": "application/json" }, body: "{}" }),
      });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ issues: [{ path: "unknown" }] });
    },
  );

  it("is a PDF where an invoice is asked for as one, and the description says so", async () => {
    const document = await (await call("/api/v1/openapi.json")).json<Document>();
    const { responses } = document.paths["/invoice/{token}/pdf"]!["get"]!;
    expect(Object.keys(responses["200"]!.content)).toEqual(["application/pdf"]);
    expect(responses["416"]).toBeUndefined();
  });

  it("answers an invoice, its payment, set-up and a backup's address as documented", async () => {
    const { invoiceToken } = await createSite(await operator());
    const invoice = `/invoice/${invoiceToken}`;
    expect((await enter("getInvoiceByToken", invoice)).answered).toMatchObject({ status: "unpaid" });
    expect((await enter("payInvoice", `${invoice}/pay`)).answered).toMatchObject({ status: "paid" });
    expect((await enter("payInvoice", "/invoice/inv_none/pay")).status).toBe(404);
    const input = { email, password, name: "Ada" };
    expect((await enter("setUp", "/setup", input)).status).toBe(401);
    const link = `expires=1&by=key_none&signature=${"A".repeat(43)}`;
    expect((await enter("downloadBackup", `/backups/bak_none/download?${link}`)).status).toBe(404);
  });
});
