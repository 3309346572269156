import { expect, it, vi } from "vitest";
import { api, call, setupToken } from "./service.ts";
import { rows } from "./stripe-service.ts";

const input = { email: "operator@example.com", password: "a password that is long", name: "Operator" };
const setUp = async (body: object, token = setupToken) => {
  const answer = await call("/setup", {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json<{ accountId: string; apiKey: string }>() };
};
it("whoever set up and lost the answer gets another key by asking again, until a key was used", async () => {
  const first = await setUp(input);
  const again = await setUp(input);
  expect([first.status, again.status, again.body.accountId]).toEqual([201, 201, first.body.accountId]);
  expect((await api(first.body.apiKey, "GET", "/account")).status).toBe(401);
  expect((await setUp({ ...input, password: "another long password" })).status).toBe(409);
  expect((await setUp({ ...input, email: "other@example.com" })).status).toBe(409);
  expect((await setUp(input, "guessed")).status).toBe(401);
  expect((await api(again.body.apiKey, "GET", "/account")).status).toBe(200);
  await vi.waitFor(async () =>
    expect(await rows("SELECT id FROM api_keys WHERE last_used_at IS NOT NULL")).toHaveLength(1),
  );
  expect((await setUp(input)).status).toBe(409);
  expect((await api(again.body.apiKey, "GET", "/account")).status).toBe(200);
});
