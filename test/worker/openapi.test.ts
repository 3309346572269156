import type * as z from "zod";
import { describe, expect, it } from "vitest";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { app } from "../../worker/app.ts";
import { call } from "./service.ts";

type Tagged = { target?: "json" | "query"; schema?: z.ZodType };
type Media = { schema: unknown; example?: unknown };
type Document = {
  openapi: string;
  paths: Record<string, Record<string, { responses: Record<string, { content: Record<string, Media> }> }>>;
};

const all = Object.entries<Operation>(operations);
const below = { site: "", webhook: "", api: "/api/v1" } as const;
const mountPath = ({ path, at }: Operation) => below[at ?? "api"] + path.replaceAll(/\{(\w+)\}/g, ":$1");
const methods = new Set(["GET", "POST", "PATCH", "PUT", "DELETE"]);
/** Not the API: pages for people, their forms, and what the agent and set-up use. */
const isApi = (path: string) => /^\/(api\/v1|webhooks|health)(\/|$)/.test(path) && !path.includes("*");

const mounted = () => app.routes.filter(({ method, path }) => methods.has(method) && isApi(path));

describe("the OpenAPI document", () => {
  it("documents the very routes that are mounted, no more and no less", () => {
    const routes = new Set(mounted().map(({ method, path }) => `${method} ${path}`));
    const documented = new Set(all.map(([, one]) => `${one.method.toUpperCase()} ${mountPath(one)}`));
    expect([...routes].toSorted()).toEqual([...documented].toSorted());
  });

  it.each(all)("%s validates with the schemas it documents", (_, operation) => {
    const handlers = mounted().filter(
      ({ method, path }) => method === operation.method.toUpperCase() && path === mountPath(operation),
    );
    const schemaOf = (target: "json" | "query") =>
      handlers.map(({ handler }) => handler as Tagged).find((one) => one.target === target)?.schema;
    expect(schemaOf("json")).toBe(operation.body);
    expect(schemaOf("query")).toBe(operation.query);
  });

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
      expect(pattern).not.toContain("\\p{");
      expect(() => new RegExp(JSON.parse(pattern) as string)).not.toThrow();
    }
    const ids = [...text.matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
    expect(new Set(ids)).toEqual(new Set(Object.keys(operations)));
    expect(ids.length).toBe(Object.keys(operations).length);
  });

  it("says what parameters and fields mean, and so does the page: how a log is followed and gone on with", async () => {
    const document = await (
      await call("/api/v1/openapi.json")
    ).json<{
      paths: Record<string, { get: { parameters: { name: string; description?: string }[] } }>;
    }>();
    const page = await (await call("/docs")).text();
    for (const [id, operation] of all) {
      if (!operation.streams || operation.method !== "get") continue;
      const { parameters } = document.paths[operation.path]?.get ?? { parameters: [] };
      const told = Object.fromEntries(parameters.map(({ name, description }) => [name, description]));
      expect([id, told]).toMatchObject([
        id,
        {
          follow: expect.stringContaining("server-sent events"),
          "Last-Event-ID": expect.stringContaining("go on after this event"),
        },
      ]);
    }
    for (const said of ["go on after this event", "Lines from the end.", "null removes the variable."])
      expect(page).toContain(said);
  });

  it("is readable as a page without a script or anything from elsewhere", async () => {
    const response = await call("/docs");
    const html = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get("Content-Security-Policy")).toContain("default-src 'none'");
    expect(html).not.toMatch(/<script|<link|<img|src=/);
    for (const [id] of all) expect(html).toContain(`id="${id}"`);
  });
});
