import { describe, expect, it } from "vitest";
import { account, api, bindings, call, siteInput } from "./service.ts";

const post = async (key: string, idempotencyKey: string, body: unknown, path = "/sites") => {
  const response = await call(`/api/v1${path}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${key}`,
      "Content-Type": "application/json",
      "Idempotency-Key": idempotencyKey,
    },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    replayed: response.headers.get("Idempotency-Replayed"),
    text: await response.text(),
  };
};

const count = async (key: string) => (await api<{ data: unknown[] }>(key, "GET", "/sites")).body.data.length;

describe("a request with an Idempotency-Key", () => {
  it("sent again answers the first answer byte for byte and creates nothing", async () => {
    const key = await account();
    const input = siteInput();
    const first = await post(key, "once", input);
    const second = await post(key, "once", input);
    expect([first.status, first.replayed]).toEqual([201, null]);
    expect(second).toEqual({ ...first, replayed: "true" });
    expect(await count(key)).toBe(1);
  });

  it("sent many times at once runs once", async () => {
    const key = await account();
    const input = siteInput();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(key, "race", input)));
    expect(answers.filter(({ status, replayed }) => status === 201 && replayed === null)).toHaveLength(1);
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    expect(await count(key)).toBe(1);
  });

  it("with another body is refused", async () => {
    const key = await account();
    await post(key, "other", siteInput());
    const second = await post(key, "other", siteInput());
    expect([second.status, JSON.parse(second.text)]).toEqual([422, { error: "idempotency_mismatch" }]);
    expect(await count(key)).toBe(1);
  });

  it("that was refused may be mended and sent again under the same key", async () => {
    const key = await account();
    expect((await post(key, "mend", siteInput({ port: 0 }))).status).toBe(400);
    expect((await post(key, "mend", siteInput())).status).toBe(201);
  });

  it("is the account's own: another account's equal key means nothing", async () => {
    const [one, two] = [await account(), await account()];
    const input = siteInput();
    expect((await post(one, "same", input)).status).toBe(201);
    expect(await post(two, "same", input)).toMatchObject({ status: 201, replayed: null });
  });

  it("of a bad form is refused", async () => {
    const key = await account();
    expect((await post(key, "with space", siteInput())).status).toBe(400);
    expect((await post(key, "x".repeat(256), siteInput())).status).toBe(400);
  });

  it("runs anew after a day, and its answer is stored sealed", async () => {
    const key = await account();
    const first = await post(key, "old", siteInput());
    const { results } = await bindings.DB.prepare("SELECT * FROM idempotent_requests").all();
    expect(JSON.stringify(results)).not.toContain(
      (JSON.parse(first.text) as { invoiceToken: string }).invoiceToken,
    );
    await bindings.DB.prepare("UPDATE idempotent_requests SET created_at = 1").run();
    expect(await post(key, "old", siteInput())).toMatchObject({ status: 201, replayed: null });
  });
});
