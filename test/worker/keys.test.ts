import { describe, expect, it } from "vitest";
import { account, api, call, createSite, operator, siteUrl } from "./service.ts";

async function signedIn() {
  await operator();
  const response = await call("/sign-in", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl },
    body: new URLSearchParams({ email: "operator@example.com", password: "correct horse battery" }),
  });
  const headers = {
    Cookie: response.headers.get("Set-Cookie")?.split(";")[0] ?? "",
    Origin: siteUrl,
    "Content-Type": "application/json",
  };
  return async <Body = Record<string, unknown>>(method: string, path: string, body?: unknown) => {
    const answer = await call(`/api/v1${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Body };
  };
}

describe("API keys", () => {
  it("are made by a signed-in person, shown once, listed without the key, and refused right after revocation", async () => {
    const person = await signedIn();
    const made = await person<{ id: string; key: string }>("POST", "/keys", { name: "laptop" });
    expect([made.status, made.body]).toEqual([
      201,
      expect.objectContaining({
        name: "laptop",
        origin: "dashboard",
        key: expect.stringMatching(/^sk_/),
        lastUsedAt: null,
      }),
    ]);
    expect((await api(made.body.key, "GET", "/sites")).status).toBe(200);
    const { body: list } = await person<{ data: { id: string }[] }>("GET", "/keys");
    expect(list.data.map(({ id }) => id)).toContain(made.body.id);
    expect(JSON.stringify(list)).not.toContain(made.body.key);
    expect((await person("DELETE", `/keys/${made.body.id}`)).status).toBe(200);
    expect((await api(made.body.key, "GET", "/sites")).status).toBe(401);
    expect((await person("DELETE", `/keys/${made.body.id}`)).status).toBe(404);
  });

  it("cannot manage keys", async () => {
    const key = await account();
    expect((await api(key, "GET", "/keys")).status).toBe(403);
    expect((await api(key, "POST", "/keys", { name: "more" })).status).toBe(403);
    expect((await api(key, "DELETE", "/keys/key_1")).status).toBe(403);
  });

  it("revoked while many requests use them are not brought back by one of them", async () => {
    const person = await signedIn();
    const { body } = await person<{ id: string; key: string }>("POST", "/keys", { name: "raced" });
    const uses = Array.from({ length: 40 }, () =>
      api(body.key, "GET", "/packs").then(() => api(body.key, "GET", "/sites")),
    );
    await person("DELETE", `/keys/${body.id}`);
    await Promise.all(uses);
    expect((await api(body.key, "GET", "/sites")).status).toBe(401);
  });
});

describe("invoices", () => {
  it("are listed newest first, page by page, to their account only", async () => {
    const [key, other] = [await account(), await account()];
    const made = [await createSite(key), await createSite(key), await createSite(key)];
    const first = await api<{ data: { id: string }[]; nextCursor: string }>(key, "GET", "/invoices?limit=2");
    const second = await api<{ data: { id: string }[]; nextCursor: null }>(
      key,
      "GET",
      `/invoices?limit=2&cursor=${first.body.nextCursor}`,
    );
    const seen = [...first.body.data, ...second.body.data].map(({ id }) => id);
    expect(new Set(seen)).toEqual(new Set(made.map(({ invoiceId }) => invoiceId)));
    expect(seen).toEqual(seen.toSorted().toReversed());
    expect(second.body.nextCursor).toBeNull();
    expect((await api(key, "GET", `/invoices/${seen[0]}`)).body).toMatchObject({
      status: "unpaid",
      kind: "site",
    });
    expect((await api(other, "GET", `/invoices/${seen[0]}`)).status).toBe(403);
    expect((await api(other, "GET", "/invoices/invoice_none")).status).toBe(404);
    expect((await api(key, "GET", "/invoices?limit=0")).status).toBe(400);
    expect((await api(key, "GET", "/invoices?unknown=1")).status).toBe(400);
  });
});
