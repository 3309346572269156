import { beforeAll, describe, expect, it } from "vitest";
import type { prefetchRules } from "../../worker/pages/kit/prefetch.ts";
import { dashboardPages } from "../support/dashboard-pages.ts";
import { api, call, createSite, operator, operatorCookie, pay, siteUrl } from "./service.ts";

let cookie = "";
beforeAll(async () => {
  await operator();
  cookie = await operatorCookie();
});

const get = (path: string, own = cookie) =>
  call(path, { redirect: "manual", headers: { Accept: "text/html", ...(own && { Cookie: own }) } });
const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  call(path, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, Cookie: cookie, Accept: "text/html", ...headers },
    body: new URLSearchParams(fields),
  });

it("each screen is opened by the proofs over all pages", async () => {
  const { screens } = await import("../../worker/routes/dashboard.ts");
  expect(screens.map(({ path }) => path).toSorted()).toEqual(Object.keys(dashboardPages).toSorted());
});

describe("asking for a page while its link is pressed", () => {
  const patterns = async () => {
    const named = /^"(.+)"$/.exec((await get("/")).headers.get("Speculation-Rules") ?? "")?.[1] ?? "";
    const answer = await call(named);
    expect(answer.headers.get("Content-Type")).toBe("application/speculationrules+json");
    const [rule] = (await answer.json<typeof prefetchRules>()).prefetch;
    return (rule?.where.href_matches ?? []).map(
      (pattern) => new URLPattern({ ...pattern, baseURL: siteUrl }),
    );
  };

  it("is offered for every screen that has no part of its own", async () => {
    const among = await patterns();
    const shown = { site: "site_1", deployment: "dep_1", command: "cmd_1", database: "db_1" };
    const paths = Object.values(dashboardPages)
      .map((at) => at({ ...shown, account: "acc_1", invoice: "inv_1" }))
      .filter((path) => !path.includes("?") && path !== "/assistant");
    expect(paths.filter((path) => !among.some((one) => one.test(siteUrl + path)))).toEqual([]);
  });

  it("is never offered for what reveals, streams, downloads, approves or signs out", async () => {
    const among = await patterns();
    const paths = [
      "/databases/db_1/connect?reveal=1",
      "/deployments/dep_1?plain=1",
      "/api/v1/account/export",
      "/api/auth/sign-out",
      "/sign-out",
      "/view-as/end",
      "/invoice/inv_1",
      "/invoice/inv_1/pdf",
      "/test-payments/pay_1",
      "/device?code=AAAA-AAAA",
      "/device",
      "/oauth/authorize",
      "/confirm/call_1",
      "/confirmed",
      "/backups/b/data",
      "/install/cli",
    ];
    expect(paths.filter((path) => among.some((one) => one.test(siteUrl + path)))).toEqual([]);
  });

  it("forgets every page that it has once a form was sent", async () => {
    const done = await post("/account/keys", { form: "create", name: "Forgets" });
    expect(done.headers.get("Clear-Site-Data")).toBe('"prefetchCache"');
    expect((await get("/account/keys")).headers.get("Clear-Site-Data")).toBeNull();
  });
});

describe("a screen", () => {
  it("leads who is signed out to the sign-in page and back", async () => {
    const answer = await get("/account/keys", "");
    expect([answer.status, answer.headers.get("Location")]).toEqual([303, "/sign-in?next=%2Faccount%2Fkeys"]);
  });

  it("allows no script, style or request of another origin, nothing inline, and no HTML from text", async () => {
    const policy = (await get("/account/keys")).headers.get("Content-Security-Policy") ?? "";
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "require-trusted-types-for 'script'",
      "trusted-types berth",
    ])
      expect(policy.split("; ")).toContain(rule);
    expect(policy).not.toContain("unsafe");
  });

  it("answers a form with a redirect, and says once what it did", async () => {
    const done = await post("/account/keys", { form: "create", name: "Once" });
    expect([done.status, done.headers.get("Location")]).toEqual([303, "/account/keys"]);
    const said = done.headers.getSetCookie().find((one) => one.startsWith("berth_said=")) ?? "";
    expect(said).toMatch(/HttpOnly/);
    expect(said).not.toMatch(/sk_/);
    const shown = await get("/account/keys", `${cookie}; ${said.split(";")[0]}`);
    expect(await shown.text()).toMatch(/role="status"[^]*sk_[0-9A-Za-z]{50}/);
    expect(shown.headers.getSetCookie().join()).toMatch(/berth_said=; Max-Age=0/);
    expect(await (await get("/account/keys")).text()).not.toMatch(/sk_[0-9A-Za-z]{50}/);
  });

  it("keeps what a form said for a page that is seen, where a browser asks for one ahead", async () => {
    const done = await post("/account/keys", { form: "create", name: "Ahead" });
    const said = done.headers.getSetCookie().find((one) => one.startsWith("berth_said=")) ?? "";
    const ahead = await call("/account/keys", {
      headers: {
        Accept: "text/html",
        Cookie: `${cookie}; ${said.split(";")[0]}`,
        "Sec-Purpose": "prefetch",
      },
    });
    expect(await ahead.text()).not.toMatch(/sk_[0-9A-Za-z]{50}/);
    expect(ahead.headers.getSetCookie().join()).not.toContain("berth_said");
  });

  it("says it once more where it leads a browser without a script at once, and nowhere else", async () => {
    const { siteId, invoiceToken } = await createSite(await operator());
    await pay(invoiceToken);
    const { body } = await api<{ data: { id: string }[] }>(
      await operator(),
      "GET",
      `/sites/${siteId}/deployments`,
    );
    const log = `/deployments/${body.data[0]?.id}`;
    const done = await post("/account/keys", { form: "create", name: "Twice" });
    const cookieNamed = (answer: Response, name: string) =>
      answer.headers.getSetCookie().find((one) => one.startsWith(`${name}=`)) ?? "";
    const said = cookieNamed(done, "berth_said").split(";")[0];
    const page = await get(log, `${cookie}; ${said}`);
    const leads = cookieNamed(page, "berth_said_plain");
    expect(leads).toMatch(/Max-Age=10; .*HttpOnly/);
    expect(await page.text()).toMatch(/“Twice”[^]*http-equiv="refresh" content="0; url=[^"]*\?plain=1/);
    const left = `${cookie}; ${leads.split(";")[0]}`;
    expect(await (await get(`/sites/${siteId}`, left)).text()).not.toContain("“Twice”");
    const plain = await get(`${log}?plain=1`, left);
    // The log is written into it for as long as the deployment waits.
    let text = "";
    for await (const part of plain.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      if (text.includes("“Twice”")) break;
    }
    expect(text).toContain("“Twice”");
    expect(cookieNamed(plain, "berth_said_plain")).toMatch(/berth_said_plain=; Max-Age=0/);
  });

  it("shows a refused form again: what was typed, the problem at its field, and the reason", async () => {
    const name = `<b>${"x".repeat(120)}`;
    const refused = await post("/account/keys", { form: "create", name });
    const text = await refused.text();
    expect(refused.status).toBe(400);
    expect(text).toMatch(/<input name="name"[^>]*value="&lt;b&gt;x{120}"[^>]*aria-invalid="true"/);
    expect(text).toMatch(/aria-describedby="create-name-problem create-name-hint"/);
    expect(text).toContain('class="problem" id="create-name-problem"');
    expect(text).not.toContain("<b>x");
  });

  it("takes no form that is not UTF-8: it would be read as other text", async () => {
    const send = (name: string | number[]) =>
      call("/account/keys", {
        method: "POST",
        redirect: "manual",
        headers: {
          Origin: siteUrl,
          Cookie: cookie,
          "Content-Type": "application/x-www-form-urlencoded",
        },
        body: new Uint8Array([
          ...new TextEncoder().encode("form=create&name="),
          ...(typeof name === "string" ? new TextEncoder().encode(name) : name),
        ]),
      });
    for (const name of ["%FF", "a%c3", "%ED%A0%80", [0xff]]) {
      const refused = await send(name);
      expect([name, refused.status, await refused.json()]).toMatchObject([
        name,
        400,
        { issues: [{ path: "", message: "The body is not valid UTF-8" }] },
      ]);
    }
    for (const name of ["caf%C3%A9+100%", "%EF%BF%BD%"]) expect((await send(name)).status).toBe(303);
  });

  it("refuses what is no form wherever one is taken, and fails at none", async () => {
    const send = async (path: string, type: string, body: string) => {
      const headers = { Origin: siteUrl, Cookie: cookie, "Content-Type": type };
      return (await call(path, { method: "POST", redirect: "manual", headers, body })).status;
    };
    const paths = [
      "/theme /view-as /device /confirm/x /confirm-address /sign-in /sign-up /forgot-password /reset-password",
      "/oauth/token /oauth/device",
    ].flatMap((line) => line.split(" "));
    for (const path of paths) {
      for (const type of ["multipart/form-data; boundary=x", "multipart/form-data"])
        expect([path, type, (await send(path, type, "--x")) < 500]).toEqual([path, type, true]);
      const garbled = await send(path, "application/x-www-form-urlencoded", "theme=%FF");
      expect([path, [400, 404].includes(garbled)]).toEqual([path, true]);
    }
  });

  it("shows no password again", async () => {
    const secret = "not-to-be-shown-again";
    const refused = await post("/account", { form: "password", current: secret, password: `${secret}-new` });
    expect(refused.status).toBe(400);
    expect(await refused.text()).not.toContain(secret);
  });

  it("knows no other form than its own, and none from another site", async () => {
    expect((await post("/account/keys", { form: "other" })).status).toBe(404);
    expect((await post("/account/keys", { form: "toString" })).status).toBe(404);
    expect(
      (await post("/account/keys", { form: "create", name: "a" }, { Origin: "https://evil.example" })).status,
    ).toBe(403);
  });

  it("believes no message that was not sealed by the service", async () => {
    const forged = encodeURIComponent(JSON.stringify({ tone: "good", text: "Call this number" }));
    expect(await (await get("/account/keys", `${cookie}; berth_said=${forged}`)).text()).not.toContain(
      "Call this",
    );
  });
});

describe("the look", () => {
  it.each([
    ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "⌘K"],
    ["Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "Ctrl K"],
    ["Mozilla/5.0 (X11; Linux x86_64)", "Ctrl K"],
  ])("names the keys of the reader's own keyboard: %s", async (userAgent, keys) => {
    const page = await call("/", {
      headers: { Accept: "text/html", Cookie: cookie, "User-Agent": userAgent },
    });
    expect(await page.text()).toContain(`<kbd>${keys}</kbd>`);
  });

  it("stays as the person chose it", async () => {
    const chosen = await post("/theme", { theme: "dark" }, { Referer: `${siteUrl}/sites?cursor=1` });
    expect([chosen.status, chosen.headers.get("Location")]).toEqual([303, "/sites?cursor=1"]);
    expect(chosen.headers.get("Set-Cookie")).toContain("theme=dark");
    expect(await (await get("/sites", `${cookie}; theme=dark`)).text()).toContain(
      '<html lang="en" data-theme="dark"',
    );
    for (const Referer of [
      "https://evil.example/x",
      `${siteUrl}//evil.example/x`,
      `${siteUrl}/.//evil.example`,
    ]) {
      const elsewhere = await post("/theme", { theme: "x" }, { Referer });
      expect([Referer, elsewhere.headers.get("Location")]).toEqual([Referer, "/"]);
    }
  });
});
