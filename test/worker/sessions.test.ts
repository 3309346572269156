import { describe, expect, it } from "vitest";
import { bindings, call, createSite, operator, siteUrl } from "./service.ts";

const email = "operator@example.com";
const password = "correct horse battery";

const signIn = (fields: Record<string, string>, origin = siteUrl) =>
  call("/sign-in", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: origin },
    body: new URLSearchParams(fields),
  });

async function cookie(): Promise<string> {
  await operator();
  const response = await signIn({ email, password });
  expect([response.status, response.headers.get("Location")]).toEqual([303, "/"]);
  const set = response.headers.get("Set-Cookie") ?? "";
  expect(set).toMatch(/HttpOnly/i);
  expect(set).toMatch(/SameSite=Lax/i);
  return set.split(";")[0] ?? "";
}

describe("a session", () => {
  it("is opened by the password of set-up, shows the account's sites, and ends with sign-out", async () => {
    const key = await operator();
    await createSite(key, { name: "seen-on-the-page" });
    const own = await cookie();
    expect(await (await call("/", { headers: { Cookie: own } })).text()).toContain("seen-on-the-page");
    await call("/sign-out", {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: own, Origin: siteUrl },
    });
    const after = await call("/", { redirect: "manual", headers: { Cookie: own } });
    expect([after.status, after.headers.get("Location")]).toEqual([303, "/sign-in"]);
    expect((await call("/api/v1/sites", { headers: { Cookie: own } })).status).toBe(401);
  });

  it("is refused alike for a wrong password and an unknown e-mail", async () => {
    await operator();
    const answers = await Promise.all([
      signIn({ email, password: "wrong" }),
      signIn({ email: "nobody@example.com", password }),
      signIn({ email }),
    ]);
    for (const answer of answers) {
      expect([answer.status, answer.headers.get("Set-Cookie")]).toEqual([401, null]);
      expect(await answer.text()).toContain("not right");
    }
  });

  it("is accepted by the API, where a change needs our own Origin", async () => {
    const own = await cookie();
    expect((await call("/api/v1/sites", { headers: { Cookie: own } })).status).toBe(200);
    const create = (origin?: string) =>
      call("/api/v1/hosts", {
        method: "POST",
        headers: {
          Cookie: own,
          "Content-Type": "application/json",
          ...(origin !== undefined && { Origin: origin }),
        },
        body: JSON.stringify({ name: "by-session" }),
      });
    expect((await create()).status).toBe(403);
    expect((await create("https://evil.example")).status).toBe(403);
    expect((await create(siteUrl)).status).toBe(201);
    expect((await signIn({ email, password }, "https://evil.example")).status).toBe(403);
  });

  it("is stored as a hash, as is the password", async () => {
    const [, token = ""] = (await cookie()).split("=");
    const rows = JSON.stringify([
      await bindings.DB.prepare("SELECT * FROM sessions").all(),
      await bindings.DB.prepare("SELECT * FROM accounts").all(),
    ]);
    expect(rows).not.toContain(token);
    expect(rows).not.toContain(password);
    expect(rows).toContain("scrypt$16384$16$1$");
  });

  it("past its end is worth nothing", async () => {
    const own = await cookie();
    await bindings.DB.prepare("UPDATE sessions SET expires_at = 1").run();
    expect((await call("/api/v1/sites", { headers: { Cookie: own } })).status).toBe(401);
  });
});
