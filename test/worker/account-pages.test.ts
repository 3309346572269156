import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Page } from "../../protocol/api/common.ts";
import type { Channel } from "../../protocol/api/notifications.ts";
import { account, api, bindings, call, createSite, operator, operatorCookie, siteUrl } from "./service.ts";
import { ownerOf } from "./assistant.ts";
import { signedIn, visitorWith, type Visitor } from "./pages.ts";

const newPerson = async () => {
  const key = await account();
  return { key, me: (await signedIn(key)).visitor };
};

it.each([
  "/account",
  "/account/notifications",
  "/account/sessions",
  "/billing/details",
  "/operator/settings",
])("%s leads to sign in, and back", async (path) => {
  const answer = await call(path, { redirect: "manual" });
  expect([answer.status, answer.headers.get("Location")]).toEqual([
    303,
    `/sign-in?next=${encodeURIComponent(path)}`,
  ]);
});

describe("notifications", () => {
  const path = "/account/notifications";
  let answered = 204;
  beforeEach(() => {
    answered = 204;
    const outside = globalThis.fetch.bind(globalThis);
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const url = new URL(new Request(input, init).url);
      if (url.hostname === "127.0.0.1") return outside(input, init);
      if (url.pathname !== "/dns-query" && url.hostname !== "dns.google")
        return new Response(null, { status: answered });
      const isV6 = url.searchParams.get("type") === "AAAA";
      return Response.json({ Status: 0, Answer: isV6 ? [] : [{ data: "93.184.215.14", type: 1 }] });
    });
  });
  afterEach(() => vi.restoreAllMocks());
  const channelsOf = async (key: string) =>
    (await api<Page<Channel>>(key, "GET", "/notifications/channels")).body.data;
  const webhook = { type: "webhook", name: "Hook <b>", url: "https://hooks.example.com/in" };

  it("are added with the kinds that are ticked; a webhook's secret is shown once", async () => {
    const { key, me } = await newPerson();
    expect((await me.get(path)).text).toContain("No channels yet");
    const added = await me.send(path, "create", {
      ...webhook,
      "kind-crash_loop": "true",
      "kind-deploy_failed": "true",
    });
    expect([added.status, added.said]).toEqual([303, expect.stringContaining("shown only once")]);
    expect(await channelsOf(key)).toMatchObject([
      { type: "webhook", name: "Hook <b>", kinds: ["deploy_failed", "crash_loop"], enabled: true },
    ]);
    const { text } = await me.get(path);
    expect(text).toContain("Hook &lt;b&gt;");
    expect(text).not.toContain("Hook <b>");
    expect(text).not.toContain("whsec_");
  });

  it("show a new webhook's secret on the page that follows, and on no other", async () => {
    const { cookie } = await signedIn(await account());
    const headers = { Cookie: cookie, Origin: siteUrl };
    const body = new URLSearchParams({ form: "create", ...webhook, "kind-crash_loop": "true" });
    const made = await call(path, { method: "POST", redirect: "manual", headers, body });
    const flash = made.headers.getSetCookie().find((one) => one.startsWith("berth_said="));
    expect(flash).not.toContain("whsec_");
    const next = await call(path, { headers: { Cookie: `${cookie}; ${flash?.split(";")[0]}` } });
    expect(await next.text()).toMatch(/<code class="secret">whsec_[A-Za-z0-9+/=]+<\/code>/);
    expect(next.headers.getSetCookie().some((one) => /^berth_said=;.*Max-Age=0/.test(one))).toBe(true);
  });

  it.each([
    [{ url: "http://hooks.example.com/in" }, "url"],
    [{ url: "https://127.0.0.1/" }, "url"],
    [{ url: "" }, "url"],
    [{ type: "mail" }, "url"],
    [{ name: "x".repeat(61) }, "name"],
  ])("are refused at the field, with what was typed: %o", async (wrong, field) => {
    const { key, me } = await newPerson();
    const sent = { ...webhook, "kind-certificate": "true", ...wrong };
    const { status, text } = await me.send(path, "create", sent);
    expect(status).toBe(400);
    expect(text).toMatch(new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
    expect(text).toMatch(/name="kind-certificate"[^>]*checked/);
    expect(text).not.toMatch(/name="kind-crash_loop"[^>]*checked/);
    expect(await channelsOf(key)).toEqual([]);
  });

  it("need a kind and a known type", async () => {
    const { key, me } = await newPerson();
    const none = await me.send(path, "create", webhook);
    expect([none.status, none.text]).toEqual([400, expect.stringContaining("tick at least one")]);
    const odd = await me.send(path, "create", { type: "pigeon", "kind-crash_loop": "true" });
    expect(odd.status).toBe(400);
    expect(await channelsOf(key)).toEqual([]);
  });

  it("are tested, changed, turned off and on, and deleted; the outcomes are listed", async () => {
    const { key, me } = await newPerson();
    await me.send(path, "create", { ...webhook, "kind-crash_loop": "true" });
    const [{ id } = { id: "" }] = await channelsOf(key);
    expect((await me.send(path, `test:${id}`, { id })).said).toContain("sent and accepted");
    answered = 500;
    expect((await me.send(path, `test:${id}`, { id })).said).toContain("did not arrive");
    const { text } = await me.get(path);
    for (const word of ["Sent", "Not sent"]) expect(text).toContain(`>${word}</span>`);
    expect((await me.send(path, `change:${id}`, { id })).status).toBe(400);
    expect((await me.send(path, `change:${id}`, { id, "kind-certificate": "true" })).status).toBe(303);
    expect((await me.send(path, `disable:${id}`, { id })).status).toBe(303);
    expect(await channelsOf(key)).toMatchObject([{ kinds: ["certificate"], enabled: false }]);
    expect((await me.send(path, `enable:${id}`, { id })).status).toBe(303);
    expect(await channelsOf(key)).toMatchObject([{ enabled: true }]);
    expect((await me.send(path, `delete:${id}`, { id })).said).toContain("is deleted");
    expect(await channelsOf(key)).toEqual([]);
  });

  it("of others cannot be touched", async () => {
    const { key, me } = await newPerson();
    await me.send(path, "create", { ...webhook, "kind-crash_loop": "true" });
    const [{ id } = { id: "" }] = await channelsOf(key);
    const other = await newPerson();
    for (const form of ["test", "disable", "delete", "change"]) {
      const sent = { id, "kind-certificate": "true" };
      expect([form, (await other.me.send(path, `${form}:${id}`, sent)).status]).toEqual([form, 403]);
    }
    expect(await channelsOf(key)).toMatchObject([{ enabled: true, kinds: ["crash_loop"] }]);
  });

  it("are tested ten times a minute at most", async () => {
    const { key, me } = await newPerson();
    await me.send(path, "create", { ...webhook, "kind-crash_loop": "true" });
    const [{ id } = { id: "" }] = await channelsOf(key);
    for (let sent = 0; sent < 10; sent++) await me.send(path, `test:${id}`, { id });
    expect((await me.send(path, `test:${id}`, { id })).status).toBe(429);
  });
});

describe("the profile", () => {
  it("changes the name; a wrong one is refused with what was typed", async () => {
    const { key, me } = await newPerson();
    expect((await me.send("/account", "name", { name: " Ada <Lovelace> " })).said).toBe(
      "Your name is changed.",
    );
    expect((await api(key, "GET", "/account")).body["name"]).toBe("Ada <Lovelace>");
    expect((await me.get("/account")).text).toContain('value="Ada &lt;Lovelace&gt;"');
    const refused = await me.send("/account", "name", { name: "n".repeat(101) });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/name="name"[^>]*value="n{101}"[^>]*aria-invalid="true"/);
    expect((await api(key, "GET", "/account")).body["name"]).toBe("Ada <Lovelace>");
  });

  it("changes no address without a mail that confirms it", async () => {
    const { key, me } = await newPerson();
    const { email } = (await api<{ email: string }>(key, "GET", "/account")).body;
    for (const wrong of ["nowhere", "", email]) {
      const { status, text } = await me.send("/account", "email", { email: wrong });
      expect([wrong, status]).toEqual([wrong, 400]);
      expect(text).toMatch(/name="email"[^>]*aria-invalid="true"/);
    }
    const sent: string[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      sent.push(await new Request(input, init).text());
      return Response.json({ id: "mail" });
    });
    const asked = await me.send("/account", "email", { email: "new@example.com" });
    vi.restoreAllMocks();
    expect(asked.said).toContain("We sent a link to new@example.com");
    expect(sent).toEqual([expect.stringContaining("new@example.com")]);
    expect((await api(key, "GET", "/account")).body["email"]).toBe(email);
  });

  it("links to the export, which the browser's session gets", async () => {
    const { me } = await newPerson();
    const [, link = ""] = /href="([^"]*export[^"]*)"/.exec((await me.get("/account")).text) ?? [];
    const { status, headers } = await me.get(link);
    expect([status, headers.get("Content-Disposition")]).toEqual([
      200,
      'attachment; filename="berth-account.json"',
    ]);
  });

  it("says what stands in the way of deleting the account, and then has no form for it", async () => {
    const { key, me } = await newPerson();
    await createSite(key);
    const { email } = (await api<{ email: string }>(key, "GET", "/account")).body;
    const { text } = await me.get("/account");
    expect(text).toContain("It has sites. Delete them first");
    expect(text).not.toContain('id="form-delete"');
    const refused = await me.send("/account", "delete", { confirm: email });
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("It has sites.")]);
    expect((await me.get("/account")).status).toBe(200);
  });

  it("deletes the account by its address, with its credits only if that is said", async () => {
    const { key, me } = await newPerson();
    const { email } = (await api<{ email: string }>(key, "GET", "/account")).body;
    await api(await operator(), "POST", "/credits/grants", { accountId: await ownerOf(key), amount: 3 });
    expect((await me.get("/account")).text).toContain("Lose 3 credits");
    const wrong = await me.send("/account", "delete", { confirm: "x@example.com", loseCredits: "true" });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toMatch(/name="confirm"[^>]*aria-invalid="true"/);
    expect((await me.send("/account", "delete", { confirm: email })).status).toBe(409);
    const gone = await me.send("/account", "delete", { confirm: email, loseCredits: "true" });
    expect([gone.status, gone.location]).toEqual([303, "/sign-in"]);
    expect((await api(key, "GET", "/account")).status).toBe(401);
    expect((await me.get("/account")).status).toBe(303);
  });
});

describe("signed-in browsers", () => {
  it("are listed with this one marked, and another is signed out; nobody else's", async () => {
    const key = await account();
    const [mine, other] = [await signedIn(key), await signedIn(key, "<i>Chrome</i>")];
    const stranger = await newPerson();
    const { text } = await mine.visitor.get("/account/sessions");
    expect(text).toContain("This browser");
    expect(text).toContain("&lt;i&gt;Chrome&lt;/i&gt;");
    expect(text).toContain(`form-end:${other.id}`);
    expect(text).not.toContain(`form-end:${mine.id}`);
    const end = (by: Visitor) => by.send("/account/sessions", `end:${other.id}`, { id: other.id });
    expect((await end(stranger.me)).status).toBe(403);
    expect((await other.visitor.get("/account")).status).toBe(200);
    expect((await end(mine.visitor)).said).toBe("The browser is signed out.");
    expect((await other.visitor.get("/account")).status).toBe(303);
  });

  it("are named by browser and system; what is no browser by its own words, which are not HTML", async () => {
    const key = await account();
    const { visitor } = await signedIn(
      key,
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
    );
    await signedIn(key, "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.0 Safari/605.1.15");
    await signedIn(key, "curl <b>8</b>");
    const { text } = await visitor.get("/account/sessions");
    for (const name of [">Edge on Windows<", ">Safari on macOS<", ">curl &lt;b&gt;8&lt;/b&gt;<"])
      expect(text).toContain(name);
    expect(text).not.toContain("Mozilla/5.0");
  });

  it("are all signed out but this one", async () => {
    const key = await account();
    const [mine, other] = [await signedIn(key), await signedIn(key)];
    expect((await mine.visitor.send("/account/sessions", "others")).said).toBe("One browser is signed out.");
    expect((await other.visitor.get("/account")).status).toBe(303);
    expect((await mine.visitor.get("/account/sessions")).text).not.toContain("Sign out all others");
  });
});

describe("billing details", () => {
  const path = "/billing/details";
  const buyer = {
    name: "Käufer <AG>",
    address: "Seestrasse 7\r\n8001 Zürich",
    country: "CH",
    vatId: "CHE-123.456.789",
  };
  it("are saved, shown again and emptied", async () => {
    const { key, me } = await newPerson();
    expect((await me.get("/billing")).text).toContain(`href="${path}"`);
    expect((await me.send(path, "details", buyer)).said).toContain("are saved");
    expect((await api(key, "GET", path)).body).toEqual({
      ...buyer,
      address: "Seestrasse 7\n8001 Zürich",
      vatId: "CHE123456789",
    });
    const { text } = await me.get(path);
    expect(text).toContain('value="Käufer &lt;AG&gt;"');
    await me.send(path, "details", { ...buyer, vatId: "", address: "" });
    expect((await api(key, "GET", path)).body).toMatchObject({ address: null, vatId: null });
  });

  it.each([{ vatId: "123" }, { country: "de" }, { name: "n".repeat(201) }])(
    "are refused at the field, and nothing changes: %o",
    async (wrong) => {
      const { key, me } = await newPerson();
      const [field = ""] = Object.keys(wrong);
      const { status, text } = await me.send(path, "details", { ...buyer, ...wrong });
      expect(status).toBe(400);
      expect(text).toMatch(new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
      expect(text).toContain("Seestrasse 7");
      expect((await api(key, "GET", path)).body).toMatchObject({ name: null });
    },
  );
});

describe("the installation's settings", () => {
  const path = "/operator/settings";
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0h1v1z"/></svg>';
  const brand = {
    name: "Acme & <Cloud>",
    logo: svg,
    accent: "#0f766e",
    termsUrl: "https://acme.example/terms",
    privacyUrl: "",
    imprintUrl: "https://acme.example/imprint?a=1&b=%22",
    supportUrl: "",
  };
  let me: Visitor;
  beforeEach(async () => {
    await operator();
    me = visitorWith(await operatorCookie());
  });
  afterEach(async () => {
    await api(await operator(), "PATCH", "/settings", { brand: { name: "Berth" } });
    await bindings.DB.prepare("DELETE FROM installation_settings").run();
  });

  it("are the operator's alone", async () => {
    const other = await newPerson();
    expect((await other.me.get(path)).status).toBe(403);
    expect((await other.me.send(path, "brand", brand)).status).toBe(403);
    expect((await (await call("/sign-in")).text()).includes("Acme")).toBe(false);
  });

  it("give every page the name, the logo as an image and the legal links", async () => {
    expect((await (await call("/sign-in")).text()).includes("· Berth</title>")).toBe(true);
    expect((await me.send(path, "brand", brand)).said).toContain("The brand is saved");
    for (const text of [(await me.get("/account")).text, await (await call("/sign-in")).text()]) {
      expect(text).toContain("· Acme &amp; &lt;Cloud&gt;</title>");
      expect(text).toContain('aria-label="Acme &amp; &lt;Cloud&gt;, home"');
      expect(text).toContain(`src="data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}"`);
      expect(text).toContain('href="https://acme.example/terms"');
      expect(text).toContain('href="https://acme.example/imprint?a=1&amp;b=%22"');
      expect(text).not.toContain("Privacy</a>");
      expect(text).not.toContain(svg);
    }
    await me.send(path, "brand", { ...brand, name: "", logo: "", termsUrl: "" });
    const { text } = await me.get("/account");
    expect(text).toContain("· Berth</title>");
    expect(text).toContain("⚓");
    expect(text).not.toContain("Terms</a>");
  });

  it.each([
    ["accent", "#ffffff"],
    ["logo", "<svg onload=alert(1)></svg>"],
    ["termsUrl", "javascript:alert(1)"],
    ["name", "x".repeat(61)],
  ])("refuse a wrong %s at its field, with what was typed", async (field, value) => {
    const { status, text } = await me.send(path, "brand", { ...brand, [field]: value });
    expect(status).toBe(400);
    expect(text).toMatch(new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
    expect(text).toContain("https://acme.example/imprint?a=1&amp;b=%22");
    expect(text).not.toContain("<svg onload");
    expect((await api(await operator(), "GET", "/settings")).body).toMatchObject({ updatedAt: null });
  });

  it("colour the pages by a style sheet, which is empty without a colour", async () => {
    const sheet = async () => {
      const answer = await call("/brand.css");
      expect([answer.status, answer.headers.get("Content-Type")]).toEqual([200, "text/css; charset=utf-8"]);
      return answer.text();
    };
    await me.send(path, "brand", { ...brand, accent: "" });
    expect(await sheet()).toBe("");
    expect((await me.get(path)).text).not.toContain("brand.css");
    await me.send(path, "brand", brand);
    expect(await sheet()).toContain("--accent:light-dark(#0f766e,");
    expect((await me.get(path)).text).toContain('href="/brand.css?accent=0f766e"');
  });

  it("name the seller, and take it back", async () => {
    const seller = {
      name: "Acme GmbH",
      address: "Hafenstrasse 1\n20457 Hamburg",
      vatId: "DE123456789",
      email: "billing@acme.example",
      note: "Thank you.",
    };
    expect((await me.send(path, "seller", seller)).status).toBe(303);
    expect((await api(await operator(), "GET", "/settings")).body).toMatchObject({ seller });
    expect((await me.send(path, "seller", { ...seller, email: "nobody" })).status).toBe(400);
    const taxed = { ...seller, taxName: "VAT", taxPercent: "7,7" };
    expect((await me.send(path, "seller", taxed)).status).toBe(303);
    expect((await api(await operator(), "GET", "/settings")).body).toMatchObject({
      seller: { ...seller, tax: { name: "VAT", percent: 7.7 } },
    });
    for (const [wrong, field] of [
      [{ taxPercent: "" }, "taxPercent"],
      [{ taxName: "" }, "taxName"],
      [{ taxPercent: "a lot" }, "taxPercent"],
      [{ taxPercent: "101" }, "taxPercent"],
    ] as const)
      expect((await me.send(path, "seller", { ...taxed, ...wrong })).text).toMatch(
        new RegExp(`name="${field}"[^>]*aria-invalid="true"`),
      );
    await me.send(path, "seller", { ...seller, note: "" });
    expect((await api(await operator(), "GET", "/settings")).body).toMatchObject({ seller: { note: null } });
  });
});
