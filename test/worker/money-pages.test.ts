import { beforeAll, describe, expect, it } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Invoice } from "../../protocol/api/invoices.ts";
import type { Activity } from "../../protocol/api/activity.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { Pack } from "../../protocol/api/packs.ts";
import { addDays } from "../../worker/domain/pricing.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { day } from "../../protocol/days.ts";
import { ownerOf, say, scripted } from "./assistant.ts";
import { escaped, fieldsOf, signedIn, visitorWith, type Visitor } from "./pages.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  pay,
  site,
  siteUrl,
  uniqueName,
} from "./service.ts";
import { smallPackage } from "./stripe-service.ts";
import { invoicesOf, tickAt } from "./terms-service.ts";

let me: Visitor;
beforeAll(async () => {
  me = visitorWith(await operatorCookie());
});

const html = { headers: { Accept: "text/html" } };
const invoiceOf = async (id: string) => (await api<Invoice>(await operator(), "GET", `/invoices/${id}`)).body;

describe("Billing", () => {
  it("is for who is signed in, and shows what they have, what is due, and no one else's", async () => {
    const name = uniqueName("billed");
    const { siteId, invoiceToken } = await createSite(await operator(), { name });
    const strange = await createSite(await account(), { name: uniqueName("strange") });
    for (const path of ["/billing", `/billing/plan/${siteId}`, "/activity"])
      expect((await call(path, { redirect: "manual" })).headers.get("Location")).toBe(
        `/sign-in?next=${encodeURIComponent(path)}`,
      );
    const { text } = await me.get("/billing");
    expect(text).toContain(`href="/invoice/${invoiceToken}"`);
    expect(text).toContain(`href="/sites/${siteId}"`);
    expect(text).not.toContain(strange.invoiceToken);
    expect((await me.get(`/billing/plan/${strange.siteId}`)).status).toBe(403);
  });

  it("narrows invoices down by their state, and cancels one that was never paid, with what it was for", async () => {
    const { siteId, invoiceId, invoiceToken } = await createSite(await operator());
    const paid = await createSite(await operator());
    await pay(paid.invoiceToken);
    const [unpaidOnly, paidOnly] = [
      await me.get("/billing?status=unpaid"),
      await me.get("/billing?status=paid"),
    ];
    const pdf = (token: string) => `href="/invoice/${token}/pdf"`;
    expect([
      unpaidOnly.text.includes(pdf(invoiceToken)),
      unpaidOnly.text.includes(pdf(paid.invoiceToken)),
    ]).toEqual([true, false]);
    expect([
      paidOnly.text.includes(pdf(invoiceToken)),
      paidOnly.text.includes(pdf(paid.invoiceToken)),
    ]).toEqual([false, true]);
    expect((await me.get("/billing?status=nonsense")).status).toBe(200);
    const cancelled = await me.send("/billing", `cancel:${invoiceId}`, { id: invoiceId });
    expect([cancelled.status, cancelled.said]).toEqual([303, expect.stringContaining("cancelled")]);
    expect((await invoiceOf(invoiceId)).status).toBe("void");
    expect((await api(await operator(), "GET", `/sites/${siteId}`)).status).not.toBe(200);
  });

  it("sells credits by an invoice, after which the balance and the purchase are shown", async () => {
    const { data } = (
      await api<{ data: { id: string; credits: number }[] }>(null, "GET", "/credits/packages")
    ).body;
    const bought = data[0];
    const { status, location } = await me.send("/billing", `buy:${bought?.id}`, {
      packageId: bought?.id ?? "",
    });
    expect([status, location]).toEqual([303, expect.stringMatching(/^\/invoice\/inv_/)]);
    const { balance } = (await api<{ balance: number }>(await operator(), "GET", "/credits")).body;
    await pay((location ?? "").replace("/invoice/", ""));
    const { text } = await me.get("/billing");
    expect(text).toContain(`${(balance + (bought?.credits ?? 0)).toLocaleString("en-US")}</p>`);
    expect(text).toContain("Bought");
    expect((await me.get(location ?? "")).text).toContain('href="/billing">Go to your credits');
  });

  it("changes a site's plan: what it will cost is said before, and is what the invoice asks", async () => {
    const { siteId, invoiceToken } = await createSite(await operator());
    const path = `/billing/plan/${siteId}`;
    expect((await me.get(path)).text).toContain("once the first invoice is paid");
    await pay(invoiceToken);
    const { data } = (await api<{ data: { id: string; kind: string }[] }>(null, "GET", "/packs")).body;
    const dearest = data.filter(({ kind }) => kind === "site").at(-1)?.id ?? "";
    const [, promised = ""] =
      new RegExp(`value="${dearest}"[\\s\\S]*?(\\$[\\d.,]+) now for`).exec((await me.get(path)).text) ?? [];
    expect(promised).not.toBe("");
    const { location } = await me.send(path, "plan", { packId: dearest, billingTerm: "1" });
    expect(
      (await call(location ?? "", html).then((answer) => answer.text())).includes(`Pay ${promised}`),
    ).toBe(true);
    const selected = async (page: string) =>
      /<option value="(\d+)" selected/.exec((await me.get(page)).text)?.[1];
    expect(await selected(path)).toBe("1");
    await me.send(path, "plan", { packId: dearest, billingTerm: "12" });
    expect([await selected(path), await selected(`/sites/${siteId}/settings`)]).toEqual(["12", "12"]);
    const { text } = await me.get("/billing");
    expect(text).toContain("for 12 months");
    // What was chosen while it was on offer can be kept.
    await bindings.DB.prepare("UPDATE packs SET active = 0 WHERE id = ?").bind(dearest).run();
    const kept = await me.send(path, "plan", { packId: dearest, billingTerm: "6" });
    await bindings.DB.prepare("UPDATE packs SET active = 1 WHERE id = ?").bind(dearest).run();
    expect([kept.status, await selected(path)]).toEqual([303, "6"]);
    const refused = await me.send(path, "plan", { packId: "pack_none", billingTerm: "1" });
    expect([refused.status, refused.text.includes("no active site pack has this id")]).toEqual([400, true]);
  });
});

it("a plan is offered with the open renewal, whose price it changes, and none before one that is overdue is paid", async () => {
  const { siteId, invoiceToken } = await createSite(await operator());
  await pay(invoiceToken);
  const endsIn = async (days: number) => {
    await bindings.DB.prepare("UPDATE sites SET paid_until = ? WHERE id = ?")
      .bind(addDays(new Date(), days).getTime(), siteId)
      .run();
    await tickAt(new Date());
  };
  const { data } = (await api<{ data: Pack[] }>(null, "GET", "/packs")).body;
  const dearest = data.findLast(({ kind }) => kind === "site");
  const pages = [`/billing/plan/${siteId}`, `/sites/${siteId}/settings`];
  await endsIn(5);
  for (const path of pages) {
    const { text } = await me.get(path);
    expect(text).toMatch(
      new RegExp(`value="${dearest?.id}"[^]*?From \\d+ \\w+ \\d+ on, at the next renewal`),
    );
    expect(text).not.toContain("now for the time");
  }
  const changed = await me.send(pages[0] ?? "", "plan", { packId: dearest?.id ?? "", billingTerm: "1" });
  expect(changed.said).toBe("The plan changes at the next renewal.");
  const renewals = (await invoicesOf(siteId)).filter(({ status }) => status === "unpaid");
  expect(renewals).toMatchObject([{ amount_cents: dearest?.amountCents }]);
  await endsIn(-1);
  for (const path of pages) {
    const { text } = await me.get(path);
    expect(text).toContain(
      `The plan can be changed once <a href="${siteUrl}/invoice/${renewals[0]?.token}">`,
    );
    expect(text).not.toContain('name="packId"');
    expect(text).not.toContain("whose invoice is replaced");
  }
});

it("the plan of each site can be changed, and who has paid for one is led to its build, however many there are", async () => {
  const key = await account();
  const { siteId, invoiceToken } = await createSite(key);
  await pay(invoiceToken);
  await bindings.DB.prepare(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
    INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at,
      paid_until)
    SELECT id || i, account_id, name || i, 'FAILED', deploy_type, port, pack_id, billing_term, slug || i, webhook_hash || i,
      created_at, updated_at, paid_until - 1 FROM sites, n WHERE id = ?1`)
    .bind(siteId)
    .run();
  const path = `/billing/plan/${siteId}`;
  const { visitor: owner } = await signedIn(key);
  expect((await owner.get(path)).text).toContain("Change the plan");
  const { data } = (await api<{ data: { id: string; kind: string }[] }>(null, "GET", "/packs")).body;
  const pack = data.findLast(({ kind }) => kind === "site");
  expect((await owner.send(path, "plan", { packId: pack?.id ?? "", billingTerm: "1" })).status).toBe(303);
  // Nor is it among the first hundred that are shown with the account.
  const { siteId: newest, invoiceToken: newestInvoice } = await createSite(key);
  await pay(newestInvoice);
  const returned = `/invoice/${newestInvoice}?returned=1`;
  expect((await owner.get(returned)).location).toBe(`/sites/${newest}/newest-deployment`);
  expect((await me.get(returned)).status).toBe(200);
});

it("the next payment is all that is due on its day, and says what for", async () => {
  const key = await account();
  const [first, second] = [uniqueName("first"), uniqueName("second")];
  for (const name of [first, second]) await pay((await createSite(key, { name })).invoiceToken);
  const yearly = await createSite(key, { name: uniqueName("yearly"), billingTerm: 12 });
  await pay(yearly.invoiceToken);
  const { visitor: owner } = await signedIn(key);
  expect((await owner.get("/billing")).text).toMatch(
    new RegExp(`Next payment[^]*>\\$10\\.00<[^]*for ${first} and ${second}\\. `),
  );
});

it("a plan that is no longer offered is shown with its size and price to who has it, and its term can be changed", async () => {
  const plan = await api<Pack>(await operator(), "POST", "/packs", {
    kind: "site",
    name: "Vintage",
    amountCents: 1300,
    memoryMb: 333,
    cpuMilli: 500,
    diskGb: 7,
  });
  const packId = plan.body.id;
  const key = await account();
  const { siteId, invoiceToken } = await createSite(key, { packId });
  await pay(invoiceToken);
  const elsewhere = await createSite(key);
  await pay(elsewhere.invoiceToken);
  await api(await operator(), "PATCH", `/packs/${packId}`, { active: false });
  const { visitor: owner } = await signedIn(key);
  const billing = (await owner.get("/billing")).text;
  expect(billing).toMatch(/Vintage[^]*no longer offered[^]*\$13\.00 a month/);
  expect((await owner.get(`/sites/${siteId}`)).text).toMatch(/Vintage[^]*\$13\.00 a month/);
  for (const path of [`/billing/plan/${siteId}`, `/sites/${siteId}/settings`]) {
    const { text } = await owner.get(path);
    expect(text).toMatch(
      /333\u00a0MB\u00a0memory · 0\.5\u00a0cores · 7\u00a0GB\u00a0disk<br\/?>Your plan, which is no longer offered/,
    );
    const fields = fieldsOf(text, "plan");
    expect(fields).toMatchObject({ packId, billingTerm: "1" });
    expect((await owner.send(path, "plan", { ...fields, billingTerm: "12" })).status).toBe(303);
    expect(await site(key, siteId)).toMatchObject({ packId, nextPackId: null, nextBillingTerm: 12 });
    await api(key, "PATCH", `/sites/${siteId}`, { packId });
  }
  for (const path of [`/billing/plan/${elsewhere.siteId}`, "/sites/new"])
    expect((await owner.get(path)).text).not.toContain("Vintage");
});

describe("an invoice's page", () => {
  it("leads on to what was paid for: a site's build, a database, and keeps the navigation of who is signed in", async () => {
    const { siteId, invoiceToken } = await createSite(await operator());
    const name = uniqueName("paid");
    const { body } = await api<DatabaseCreated>(await operator(), "POST", "/databases", {
      name,
      type: "redis",
    });
    expect((await me.get(`/invoice/${body.invoiceToken}`)).text).toContain(`Database ${name}, Redis: `);
    for (const [token, next] of [
      [invoiceToken, `/sites/${siteId}/newest-deployment`],
      [body.invoiceToken, `/databases/${body.databaseId}`],
    ] as const) {
      await pay(token);
      const page = await (await call(`/invoice/${token}`, html)).text();
      expect(page).toContain(`href="${next}"`);
      expect(page).not.toContain('action="/sign-out"');
      const mine = await me.get(`/invoice/${token}`);
      expect(mine.text).toContain('action="/sign-out"');
      expect(mine.text).toContain("operator@example.com");
    }
    const build = await me.get(`/sites/${siteId}/newest-deployment`);
    expect([build.status, build.location]).toEqual([303, expect.stringMatching(/^\/deployments\/dep_/)]);
    const signedOut = await call(`/sites/${siteId}/newest-deployment`, { ...html, redirect: "manual" });
    expect(signedOut.headers.get("Location")).toMatch(/^\/sign-in/);
  });

  it("shows to who returns from the processor the balance that they paid for", async () => {
    const { visitor: payer } = await signedIn(await account());
    const bought = await payer.send("/billing", `buy:${smallPackage}`, { packageId: smallPackage });
    const checkout = await payer.send(`${bought.location}/pay`, "");
    const back = await payer.send(new URL(checkout.location ?? "").pathname, "");
    const { pathname, search } = new URL(back.location ?? "");
    expect((await payer.get(pathname + search)).text).toMatch(/id="balance"[^>]*>500 credits</);
  });

  it("says until when it can be paid, and of a renewal, which can be paid later too, only when it is due", async () => {
    const { invoiceId, invoiceToken } = await createSite(await account());
    const page = async () => (await (await call(`/invoice/${invoiceToken}`, html)).text()).split("</h1>")[1];
    expect(await page()).toContain(", payable until ");
    await bindings.DB.prepare("UPDATE invoices SET kind = 'renewal' WHERE id = ?").bind(invoiceId).run();
    expect(await page()).toContain(", due ");
    expect(await page()).not.toContain("payable until");
  });

  it("says wherever a renewal is overdue when what it renews is stopped, and once it is, how long its data is kept", async () => {
    const key = await account();
    const { visitor: owner } = await signedIn(key);
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    const paidUntil = new Date(
      (await api<{ paidUntil: string }>(key, "GET", `/sites/${siteId}`)).body.paidUntil,
    );
    await tickAt(addDays(paidUntil, -7));
    const [renewal] = await invoicesOf(siteId);
    const pages = async () => {
      const shown = [];
      for (const path of ["/", "/billing", `/invoice/${renewal?.token}`])
        shown.push((await owner.get(path)).text.replaceAll(/<[^>]*>/g, ""));
      return shown;
    };
    for (const text of await pages()) {
      expect(text).toContain("An invoice is due. Pay to keep running");
      expect(text).not.toContain("overdue");
    }
    expect((await pages())[2]).toContain(
      `is stopped on ${day(addDays(paidUntil, 7).toISOString())}, and deleted with its data 30 days later`,
    );
    // Three days after the end.
    const [issued, ended] = [-10, -3].map((days) => addDays(new Date(), days).getTime());
    await bindings.DB.prepare("UPDATE invoices SET created_at = ?, due_at = ? WHERE token = ?")
      .bind(issued, ended, renewal?.token)
      .run();
    // Newer invoices do not push it off the first page.
    for (let bought = 0; bought < 6; bought++)
      await api(key, "POST", "/credits/purchase", { packageId: smallPackage });
    for (const text of await pages()) {
      expect(text).toContain("An invoice is overdue. Pay to keep running");
      expect(text).toContain(`overdue: will be stopped on ${day(addDays(new Date(), 4).toISOString())}`);
    }
    await bindings.DB.prepare("UPDATE sites SET status = 'SUSPENDED' WHERE id = ?").bind(siteId).run();
    const stopped = (await owner.get(`/sites/${siteId}`)).text;
    expect(stopped).toContain("Pay to start again");
    expect(stopped).toContain("deleted with its data 30 days after it was stopped");
  });
});

describe("Activity", () => {
  it("tells in words what was done, by whom and to what, and is narrowed down", async () => {
    const hostile = "<b>not bold</b>";
    const { siteId } = await createSite(await operator());
    const other = await createSite(await operator());
    await api(await operator(), "PATCH", `/sites/${siteId}`, { settings: { startCommand: hostile } });
    const { text } = await me.get("/activity");
    expect(text).toContain("Created a site");
    expect(text).toContain("Changed the settings");
    expect(text).toContain(`href="/sites/${siteId}"`);
    expect(text).toMatch(/the key “test” \(sk_\w+…\)/);
    expect(text).not.toContain(">patchSite<");
    expect(text).toContain(escaped(hostile));
    expect(text).not.toContain(hostile);
    const narrow = await me.get(`/activity?resource=${siteId}&actor=key`);
    expect(narrow.text).toContain("Changed the settings");
    expect(narrow.text).not.toContain(`href="/sites/${other.siteId}"`);
    expect((await me.get(`/activity?resource=${siteId}&actor=webhook`)).text).toContain("Nothing matches");
    expect((await me.get("/activity?actor=nobody")).status).toBe(200);
  });

  it("names the key, the command line or the browser, and no operator's to the account they acted on", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    await bindings.DB.prepare("UPDATE api_keys SET name = 'Laptop <i>', origin = 'device' WHERE hash = ?")
      .bind(sha256Hex(key))
      .run();
    const { body } = await api<Page<Activity>>(key, "GET", `/activity?resource=${siteId}`);
    expect(body.data[0]).toMatchObject({
      key: { name: "Laptop <i>", start: key.slice(0, 10), origin: "device" },
      browser: null,
    });
    await api(await operator(), "POST", `/accounts/${body.data[0]?.accountId}/suspend`, { reason: "Test." });
    const after = await api<Page<Activity>>(
      await operator(),
      "GET",
      `/activity/all?accountId=${body.data[0]?.accountId}`,
    );
    expect(after.body.data).toContainEqual(
      expect.objectContaining({ actor: "operator", key: null, browser: null }),
    );
    await me.send("/account", "name", { name: "Ada" });
    expect((await me.get("/activity?actor=session")).text).toContain("you, in the dashboard");
    await bindings.DB.prepare(
      "UPDATE sessions SET user_agent = 'Mozilla/5.0 Gecko/20100101 Firefox/140.0'",
    ).run();
    expect((await me.get("/activity?actor=session")).text).toContain("you, in Firefox");
  });

  it("tells changes, and where it is asked for, what the assistant called", async () => {
    const key = await operator();
    const name = uniqueName("called");
    await createSite(key, { name });
    await api(key, "POST", "/credits/grants", { accountId: await ownerOf(key), amount: 5 });
    const calls = (["get_site", "delete_site"] as const).map((tool) => ({
      name: tool,
      args: { site: name },
    }));
    scripted({ calls }, { text: "Seen." });
    expect((await say(key, "Look")).body.toolCalls).toEqual([{ tool: "get_site", ok: true }]);
    const changes = (await me.get("/activity?actor=assistant")).text;
    expect(changes).not.toContain("get site");
    const { text } = await me.get("/activity?only=calls&actor=assistant");
    expect(text).toContain("Asked for “get site”");
    expect(text).toContain("Waited for your confirmation");
    expect(text).toContain(`<td class="any-break">${name}</td>`);
    expect(text).toContain('value="calls" selected');
    for (const path of ["/activity", "/"]) expect((await me.get(path)).text).not.toContain("get site");
  });

  it("goes on beyond a page, with the same filter", async () => {
    const { siteId } = await createSite(await operator());
    for (let port = 4000; port < 4055; port++)
      await api(await operator(), "PATCH", `/sites/${siteId}`, { settings: { port } });
    const first = await me.get(`/activity?resource=${siteId}`);
    const [, next = ""] = /href="(\/activity\?[^"]*cursor=[^"]+)"/.exec(first.text) ?? [];
    const path = next.replaceAll("&amp;", "&");
    expect(path).toContain(`resource=${siteId}`);
    expect((await me.get(path)).text).toContain("Created a site");
  });
});

describe("the first page of who is signed out", () => {
  it("says what Berth is, what it costs, and where to go", async () => {
    const response = await call("/", html);
    const text = await response.text();
    const { data } = (await api<{ data: { name: string; amountCents: number }[] }>(null, "GET", "/packs"))
      .body;
    expect(response.status).toBe(200);
    for (const { amountCents } of data) expect(text).toContain(`$${(amountCents / 100).toFixed(2)}`);
    for (const href of ["/sign-up", "/sign-in", "/docs"]) expect(text).toContain(`href="${href}"`);
    expect(text).not.toContain('action="/sign-out"');
    expect((await me.get("/")).text).toContain('action="/sign-out"');
  });
});

describe("Docs", () => {
  it("have guides before the reference, and examples with the reader's own site and no key", async () => {
    const { siteId } = await createSite(await operator());
    const open = await (await call("/docs", html)).text();
    const mine = (await me.get("/docs")).text;
    for (const text of [open, mine]) {
      expect(text.indexOf("Your first site")).toBeLessThan(text.indexOf('id="createSite"'));
      expect(text).toContain(`${siteUrl}/api/v1/sites`);
      for (const [, href = ""] of text.matchAll(/<nav class="topics"[^]*?href="#([^"]+)"/g))
        expect(text).toContain(`id="${href}"`);
      expect(text).not.toMatch(/sk_[0-9A-Za-z]{20}/);
      expect(text).toMatch(/berth logs -f<\/pre><button[^>]*data-copy="curl -fsSL/);
    }
    expect(siteId).toMatch(/^site_/);
    expect(open).toContain("/sites/site_…");
    expect(mine).toMatch(/\/api\/v1\/sites\/site_0[0-9a-z]+/);
  });
});

describe("an error page", () => {
  it("has a next step, and the navigation of who is signed in", async () => {
    const missing = await me.get("/nothing/here");
    expect([missing.status, missing.text.includes('action="/sign-out"')]).toEqual([404, true]);
    expect(missing.text).toContain('class="button primary" href="/"');
    const { siteId } = await createSite(await account());
    const foreign = await me.get(`/billing/plan/${siteId}`);
    expect([foreign.status, foreign.text.includes("Back to the home page")]).toEqual([403, true]);
  });
});
