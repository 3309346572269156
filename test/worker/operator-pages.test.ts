import { beforeAll, describe, expect, it, vi } from "vitest";
import type { AccountForOperator, OwnAccount } from "../../protocol/api/accounts.ts";
import type { Activity } from "../../protocol/api/activity.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { CreditPackage } from "../../protocol/api/credits.ts";
import type { Host } from "../../protocol/api/hosts.ts";
import type { Pack } from "../../protocol/api/packs.ts";
import type { RefundPreview } from "../../protocol/api/invoices.ts";
import { holdCredits } from "../../worker/billing/credits/hold.ts";
import { addDays } from "../../worker/domain/pricing.ts";
import { sealedPlaces } from "../../worker/domain/sealed-places.ts";
import { contextOf } from "../../worker/compose.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  hostIn,
  operator,
  operatorCookie,
  operatorLogin,
  pay,
  readyAgent,
  site,
  siteUrl,
  uniqueName,
} from "./service.ts";
import { foundOffline, hostRecord } from "./hosts-service.ts";
import { buyCredits } from "./stripe-service.ts";
import { invoicesOf, tickAt } from "./terms-service.ts";
import { escaped, fieldsOf, signedIn, visitorWith, type Visitor } from "./pages.ts";
import { ownerOf } from "./assistant.ts";

const paths = [
  "",
  "/hosts",
  "/accounts",
  "/sites",
  "/sites?kind=databases",
  "/queue",
  "/money",
  "/plans",
  "/system",
].map((tab) => `/operator${tab}`);
let me: Visitor;
beforeAll(async () => {
  await operator();
  me = visitorWith(await operatorCookie());
});

describe("the operator's console", () => {
  it("shows each of its pages", async () => {
    await createSite(await account(), { name: "somebody-elses" });
    for (const path of paths) expect([path, (await me.get(path)).status]).toEqual([path, 200]);
    expect((await me.get("/operator/sites?search=somebody-elses")).text).toContain("somebody-elses");
    expect((await me.get("/operator/queue?state=nonsense")).status).toBe(400);
  });

  it("is for operators: a person who is signed out is led to sign in", async () => {
    for (const path of paths) {
      const answer = await call(path, { redirect: "manual" });
      expect([path, answer.status]).toEqual([path, 303]);
    }
  });

  it("adds a host and shows its install command once; a wrong name keeps what was typed", async () => {
    const refused = await me.send("/operator/hosts", "create", { name: "Not A Name", region: "eu" });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/value="Not A Name"[^>]*aria-invalid="true"/);
    const added = await me.send("/operator/hosts", "create", { name: "by-page", region: "" });
    expect(added.said).toContain("The host is added");
    const { text } = await me.get("/operator/hosts");
    expect(text).toContain("Waiting for its agent");
    expect(/by-page[^]*?Remove this host<[^]*?<p>([^<]*)/.exec(text)?.[1]).toBe(
      "Its agent has never connected, so it is removed immediately.",
    );
  });

  it("adds, changes and withdraws a plan, and keeps what was typed of one that is refused", async () => {
    const plan = {
      kind: "site",
      name: "Huge",
      amount: "99,50",
      memoryMb: "8192",
      cores: "2.5",
      diskGb: "80",
      pids: "1024",
      discount12: "10",
      active: "true",
    };
    const refused = await me.send("/operator/plans", "new-pack", { ...plan, amount: "a lot" });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/value="a lot"[^>]*aria-invalid="true"/);
    expect(refused.text).toContain('value="Huge"');
    expect((await me.send("/operator/plans", "new-pack", plan)).said).toBe("The plan Huge is added.");
    const offered = async () =>
      (await api<{ data: Pack[] }>(await account(), "GET", "/packs?limit=100")).body.data.find(
        ({ name }) => name === "Huge",
      );
    const made = await offered();
    expect(made).toMatchObject({ amountCents: 9950, cpuMilli: 2500, memoryMb: 8192, diskGb: 80 });
    expect(made?.terms.find(({ months }) => months === 12)?.discountPercent).toBe(10);
    const page = (await me.get("/operator/plans")).text;
    const fields = fieldsOf(page, `pack:${made?.id}`);
    expect(fields).toMatchObject({ amount: "99.50", cores: "2.5", discount12: "10", active: "true" });
    const change: Record<string, string> = { ...fields, amount: "89" };
    expect((await me.send("/operator/plans", `pack:${made?.id}`, change)).said).toContain("is changed");
    expect(await offered()).toMatchObject({ amountCents: 8900 });
    delete change["active"];
    await me.send("/operator/plans", `pack:${made?.id}`, change);
    expect(await offered()).toBeUndefined();
    expect((await me.get("/operator/plans")).text).toMatch(/Huge[^]*Not on offer/);
  });

  it("adds and changes a credit package", async () => {
    const added = { name: "Barrel", credits: "9000", amount: "70", active: "true" };
    expect((await me.send("/operator/plans", "new-credits", added)).said).toContain("Barrel is added");
    const found = async () =>
      (await api<{ data: CreditPackage[] }>(await account(), "GET", "/credits/packages")).body.data.find(
        ({ name }) => name === "Barrel",
      );
    const made = await found();
    expect(made).toMatchObject({ credits: 9000, amountCents: 7000 });
    const change = { ...added, id: made?.id ?? "", credits: "9500" };
    expect((await me.send("/operator/plans", `credits:${made?.id}`, change)).said).toContain("is changed");
    expect(await found()).toMatchObject({ credits: 9500 });
  });

  it("voids an unpaid invoice, and says what goes with it", async () => {
    const key = await account();
    const { invoiceId, siteId } = await createSite(key);
    const { text } = await me.get(`/operator/money?search=${invoiceId}`);
    expect(text).toContain("was never paid for, and is deleted with it");
    expect((await me.send("/operator/money", `void:${invoiceId}`, { id: invoiceId })).said).toBe(
      "The invoice is void.",
    );
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
  });

  it("voids a renewal only to have it issued anew, which it says, as does the void one to who would pay it", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    await bindings.DB.prepare("UPDATE sites SET paid_until = ? WHERE id = ?")
      .bind(addDays(new Date(), 5).getTime(), siteId)
      .run();
    await tickAt(new Date());
    const [renewal] = await invoicesOf(siteId);
    const { id, token } = renewal ?? { id: "", token: "" };
    const { text } = await me.get(`/operator/money?search=${id}`);
    expect(text).toContain("Another renewal is issued within a minute");
    expect(text).not.toContain("nothing is owed");
    await me.send("/operator/money", `void:${id}`, { id });
    await tickAt(new Date());
    expect((await invoicesOf(siteId)).map(({ status }) => status)).toEqual(["void", "unpaid"]);
    const page = await (await call(`/invoice/${token}`, { headers: { Accept: "text/html" } })).text();
    expect(page).toContain("another invoice takes its place");
    expect(page).not.toContain("nothing is owed");
  });

  it("re-encrypts secrets", async () => {
    expect((await me.send("/operator/system", "rotate", { cursor: "" })).said).toMatch(
      /^(?:1 value is|\d+ values are) re-encrypted under the current key\./,
    );
  });

  it("tells one event from several in what needs attention", async () => {
    const flag = (reference: string) =>
      bindings.DB.prepare(
        "INSERT INTO payment_flags (id, reason, reference, created_at) VALUES (?1, 'invoice_void', ?1, 1)",
      )
        .bind(reference)
        .run();
    await bindings.DB.prepare("DELETE FROM payment_flags").run();
    await flag("flag_one");
    expect((await me.get("/operator")).text).toContain(">1 payment event needs attention<");
    await flag("flag_two");
    expect((await me.get("/operator")).text).toContain(">2 payment events need attention<");
    await bindings.DB.prepare("DELETE FROM payment_flags").run();
  });

  it("lists every payment event that needs attention", async () => {
    await bindings.DB.prepare(
      `WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 120)
       INSERT INTO payment_flags (id, reason, reference, created_at)
       SELECT printf('flag_%027d', value), 'invoice_void', 'reference_' || value, 1 FROM n`,
    ).run();
    const { text } = await me.get("/operator/money");
    expect(new Set(text.match(/reference_\d+/g)).size).toBe(120);
    await bindings.DB.prepare("DELETE FROM payment_flags").run();
  });

  it("says on the first page that nothing can be deployed where there is no host", async () => {
    const said = "Nothing can be deployed yet: add a host.";
    const shown = async () => (await me.get("/operator")).text;
    await api(await operator(), "POST", "/hosts", { name: "first-of-all" });
    expect(await shown()).not.toContain(said);
    const kept = await bindings.DB.prepare("SELECT id, status FROM hosts").all<{
      id: string;
      status: string;
    }>();
    await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
    expect(await shown()).toMatch(new RegExp(`figure warn">0 connected<[^]*${said}`));
    for (const { id, status } of kept.results)
      await bindings.DB.prepare("UPDATE hosts SET status = ? WHERE id = ?").bind(status, id).run();
  });

  it("goes on re-encrypting behind a secret that no key decrypts, and names it", async () => {
    const { siteId } = await createSite(await account());
    const seal = (text: string | null) =>
      bindings.DB.prepare("UPDATE sites SET git_token_sealed = ? WHERE id = ?").bind(text, siteId).run();
    await seal("unreadable");
    const said: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const done = await me.send("/operator/system", "rotate", { cursor });
      said.push(done.said);
      cursor = new URL(done.location ?? "", siteUrl).searchParams.get("rotate");
    }
    await seal(null);
    expect(said.length).toBe(Math.ceil(sealedPlaces.length / 5));
    expect(said[0]).toMatch(`No key decrypts sites.git_token:${siteId}`);
    expect(said[0]).toMatch(/There are more\.$/);
    expect(said.at(-1)).toMatch(/under the current key\.$/);
  });

  it("gives credits to an account, suspends it with a reason and releases it", async () => {
    const key = await account();
    const id = await ownerOf(key);
    const page = `/operator/accounts/${id}`;
    expect((await me.send(page, "grant", { amount: "7" })).said).toContain("credits are granted");
    expect((await me.send(page, "grant", { amount: "-7" })).status).toBe(400);
    expect((await me.send(page, "suspend", { reason: "Sends <spam>" })).said).toContain("suspended");
    expect((await me.get(page)).text).toContain("Sends &lt;spam&gt;");
    expect((await api(key, "GET", "/sites")).status).toBe(403);
    expect((await me.send(page, "release")).said).toContain("ended");
    expect((await api(key, "GET", "/credits")).body).toMatchObject({ balance: 7 });
  });

  it("keeps a note of an account, which its owner never reads", async () => {
    const key = await account();
    const id = await ownerOf(key);
    const page = `/operator/accounts/${id}`;
    expect((await me.send(page, "note", { note: "Called about <VAT>" })).said).toBe("The note is saved.");
    expect((await me.get(page)).text).toContain("Called about &lt;VAT&gt;</textarea>");
    const tooLong = await me.send(page, "note", { note: "x".repeat(4001) });
    expect(tooLong.status).toBe(400);
    expect(tooLong.text).toMatch(/<textarea[^>]*name="note"[^>]*aria-invalid="true"/);
    for (const path of ["/account", "/activity", "/account/export"])
      expect(JSON.stringify((await api(key, "GET", path)).body)).not.toContain("VAT");
    await me.send(page, "note", { note: "  " });
    expect((await api<AccountForOperator>(await operator(), "GET", `/accounts/${id}`)).body.note).toBeNull();
  });

  it("changes the plan of a customer's site as the customer would: what is dearer is invoiced first", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    const page = `/operator/accounts/${await ownerOf(key)}`;
    const bigger = "pack_001k0000000000000000000002";
    const early = await me.send(page, `plan:${siteId}`, { id: siteId, packId: bigger });
    expect([early.status, early.text.includes("The plan is changed")]).toEqual([400, false]);
    await pay(invoiceToken);
    const unknown = await me.send(page, `plan:${siteId}`, { id: siteId, packId: "pack_none" });
    expect(unknown.status).toBe(400);
    expect(unknown.text).toMatch(/<select[^>]*name="packId"[^>]*aria-invalid="true"/);
    const changed = await me.send(page, `plan:${siteId}`, { id: siteId, packId: bigger });
    expect(changed.said).toBe("The plan changes once the customer has paid the invoice for the difference.");
    expect(await site(key, siteId)).toMatchObject({ nextPackId: bigger });
    const { payment } = (await api<OwnAccount>(key, "GET", "/account")).body;
    expect(payment.unpaid).toMatchObject([{ kind: "change" }]);
    const { body } = await api<{ data: Activity[] }>(key, "GET", `/activity?resource=${siteId}`);
    expect(body.data[0]).toMatchObject({ operation: "patchTerm", actor: "operator", outcome: "done" });
    expect((await api(key, "PATCH", `/terms/${siteId}`, { packId: bigger })).status).toBe(403);
  });

  it("names a customer's plan that is no longer offered, and does not change it by a form sent untouched", async () => {
    const { body: plan } = await api<Pack>(await operator(), "POST", "/packs", {
      kind: "site",
      name: "Vintage",
      amountCents: 1300,
      memoryMb: 512,
      cpuMilli: 500,
      diskGb: 10,
    });
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key, { packId: plan.id });
    await pay(invoiceToken);
    const other = await createSite(key);
    await pay(other.invoiceToken);
    await api(await operator(), "PATCH", `/packs/${plan.id}`, { active: false });
    const page = `/operator/accounts/${await ownerOf(key)}`;
    const { text } = await me.get(page);
    expect(text).toContain("Vintage: $13.00 a month, no longer offered");
    expect(text.match(/Vintage: /g)).toHaveLength(1);
    const fields = fieldsOf(text, `plan:${siteId}`);
    expect(fields["packId"]).toBe(plan.id);
    expect((await me.send(page, `plan:${siteId}`, fields)).said).toBe("The plan stays as it is.");
    expect(await site(key, siteId)).toMatchObject({ packId: plan.id, nextPackId: null });
  });

  it("closes the sign-up, and opens it again", async () => {
    const signUp = (email: string) =>
      call("/sign-up", {
        method: "POST",
        redirect: "manual",
        headers: { Origin: siteUrl },
        body: new URLSearchParams({ name: "New", email, password: "correct horse battery" }),
      });
    const accounts = async (email: string) =>
      (await api<{ data: unknown[] }>(await operator(), "GET", `/accounts?email=${email}`)).body.data.length;
    expect((await me.send("/operator/settings", "sign-up")).said).toContain("Sign-up is closed");
    expect((await call("/sign-up")).status).toBe(403);
    expect(await (await call("/sign-in")).text()).not.toContain('href="/sign-up');
    const refused = await signUp("too-late@example.com");
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining("Nobody can sign up"),
    ]);
    expect(await accounts("too-late@example.com")).toBe(0);
    const { text } = await me.get("/operator/system");
    expect(text).toContain("closed");
    expect(text).toMatch(/A plan for sites is on offer/);
    expect((await me.send("/operator/settings", "sign-up", { open: "true" })).said).toContain("open");
    expect((await call("/sign-up")).status).toBe(200);
    expect((await signUp("in-time@example.com")).status).toBe(200);
    // Made after the answer, which says nothing of who has an account.
    await expect.poll(() => accounts("in-time@example.com")).toBe(1);
  });

  it("shows what is used of a host's machine, and of one that does not answer what is known", async () => {
    const on = await readyAgent();
    const answering = (async () => {
      const { requestId, question } = await on.next("ask");
      expect(question).toEqual({ kind: "machine" });
      const usage = {
        at: new Date().toISOString(),
        cpuCount: 4,
        cpuBusy: 0.85,
        memory: { usedMb: 3072, totalMb: 8192 },
        disk: { usedMb: 51_200, totalMb: 102_400 },
      };
      on.send({ type: "answer", requestId, answer: { kind: "machine", usage }, last: true });
    })();
    const { text } = await me.get("/operator/hosts");
    await answering;
    expect(text).toContain("3.4 of 4 cores");
    expect(text).toContain("3.0 of 8.0 GB");
    expect(text).toContain("50.0 of 100.0 GB");
    on.send({ type: "condition", disk: { freeMb: 4321, neededMb: 2048 }, ingressProblem: null });
    await expect.poll(async () => (await hostRecord(on.hostId)).diskFreeMb).toBe(4321);
    // It is asked again, and says nothing.
    expect((await me.get("/operator/hosts")).text).toContain("did not report");
    on.close();
  });

  it("accepts on their page the memory that a host reports more than before, or all of it", async () => {
    const token = await hostIn(uniqueName("region"));
    const hello = (memoryMb: number) => readyAgent(10, token, { cpuCount: 2, memoryMb });
    (await hello(4096)).close();
    const on = await hello(8192);
    const set = async (memoryMb: string) => {
      await me.send("/operator/hosts", "memory", { id: on.hostId, memoryMb });
      return (await hostRecord(on.hostId)).memoryMb;
    };
    expect((await me.get("/operator/hosts")).text).toContain("8192 MB of memory; 4096 MB are used");
    expect(await set("6000")).toBe(6000);
    expect(await set("many")).toBe(6000);
    expect(await set("")).toBe(8192);
    on.close();
  });

  it("says which hosts have another agent than the one that they are given, also of the same version", async () => {
    const served = (body: object | null) =>
      vi
        .spyOn(bindings.ASSETS, "fetch")
        .mockImplementation(() =>
          Promise.resolve(body === null ? new Response(null, { status: 404 }) : Response.json(body)),
        );
    const given = {
      agentVersion: "test+0a1b2c3d",
      agentSha256: "a".repeat(64),
      responderSha256: "b".repeat(64),
    };
    const on = await readyAgent();
    served(given);
    const { text } = await me.get("/operator/system");
    served({ ...given, agentVersion: "test" });
    const same = await me.get("/operator/system");
    vi.restoreAllMocks();
    on.close();
    expect(text).toContain("Version and upgrade");
    expect(text).toMatch(new RegExp(`/operator/hosts#${on.hostId}">[^<]*</a>: test<`));
    expect(same.text).not.toContain(`/operator/hosts#${on.hostId}">`);
  });

  it("shows a host no more once it is removed, nor its agent's version", async () => {
    const on = await readyAgent();
    on.close();
    await foundOffline(on.hostId);
    const shown = async () =>
      [(await me.get("/operator/hosts")).text, (await me.get("/operator/system")).text].map((text) =>
        text.includes(on.hostId),
      );
    expect(await shown()).toEqual([true, true]);
    expect((await me.send("/operator/hosts", "remove", { id: on.hostId, force: "1" })).said).toBe(
      "The host is removed.",
    );
    expect(await shown()).toEqual([false, false]);
    const { body } = await api<{ data: Host[] }>(await operator(), "GET", "/hosts");
    expect(body.data.map(({ id }) => id)).not.toContain(on.hostId);
  });

  it("shows all hosts, and which of them have another version, however many there are", async () => {
    const named = "host_00000000000000000000";
    await bindings.DB.prepare(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 101)
      INSERT INTO hosts (id, name, token_hash, agent_version, created_at)
      SELECT ?1 || printf('%06d', i), 'many-' || i, 'many-' || i, 'older', 0 FROM n`)
      .bind(named)
      .run();
    const oldest = `${named}000001`;
    const first = await me.get("/operator/hosts");
    const [, next = ""] = /href="(\/operator\/hosts\?cursor=[^"]+)"/.exec(first.text) ?? [];
    const second = await me.get(next);
    const { text } = await me.get("/operator/system");
    await bindings.DB.prepare("DELETE FROM hosts WHERE name LIKE 'many-%'").run();
    expect([first, second].map((page) => page.text.includes(`id="${oldest}"`))).toEqual([false, true]);
    expect(text).toContain(`/operator/hosts#${oldest}">many-1</a>`);
  });

  it("changes the plan of each site of an account, however many there are", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    await bindings.DB.prepare(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
      INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at,
        updated_at, paid_until)
      SELECT id || i, account_id, name || i, 'FAILED', deploy_type, port, pack_id, billing_term, slug || i, webhook_hash || i,
        created_at, updated_at, paid_until FROM sites, n WHERE id = ?1`)
      .bind(siteId)
      .run();
    const page = `/operator/accounts/${await ownerOf(key)}`;
    const form = `id="form-plan:${siteId}"`;
    const first = (await me.get(page)).text;
    expect(first).not.toContain(form);
    const [, next = ""] = /href="([^"]*)">Older sites</.exec(first) ?? [];
    expect((await me.get(next)).text).toContain(form);
  });

  it("leads from an account to all of its sites and databases", async () => {
    const [key, other] = [await account(), await account()];
    const id = await ownerOf(key);
    for (const [owner, name] of [
      [key, "one-of-theirs"],
      [other, "of-another"],
    ] as const) {
      await createSite(owner, { name });
      expect((await api(owner, "POST", "/databases", { name, type: "redis" })).status).toBe(201);
    }
    const { text } = await me.get(`/operator/accounts/${id}`);
    const { email } = (await api<{ email: string }>(key, "GET", "/account")).body;
    expect(text).toContain(`href="/operator/money?search=${encodeURIComponent(email)}"`);
    expect(text).toContain("not paid yet");
    expect(text).toContain("payable until");
    const path = `/operator/sites?account=${id}`;
    for (const list of [path, `${path}&kind=databases`]) {
      expect(text).toContain(`<a href="${escaped(list)}">`);
      const shown = (await me.get(list)).text;
      expect([shown.includes("one-of-theirs"), shown.includes("of-another")]).toEqual([true, false]);
      // A search in the list stays in it.
      expect(shown).toMatch(new RegExp(`<input type="hidden" name="account" value="${id}"`));
    }
  });

  it("names the databases and volumes whose backups fail, and when each database was last backed up", async () => {
    const key = await account();
    const name = uniqueName("unsafe");
    const made = await api<{ databaseId: string }>(key, "POST", "/databases", { name, type: "redis" });
    const { databaseId } = made.body;
    const row = async () => {
      const { text } = await me.get("/operator/sites?kind=databases");
      return [text, text.split(`>${name}</td>`)[1]?.split("</tr>")[0] ?? ""] as const;
    };
    expect((await row())[1]).toContain("none verified");
    await bindings.DB.prepare(
      "UPDATE databases SET backup_failures = 3, backups_failing_since = 1, backup_failure_reason = 'The store is full.' WHERE id = ?",
    )
      .bind(databaseId)
      .run();
    const [text, failing] = await row();
    expect(failing).toMatch(/began to fail <time [^]*<span class="ago">/);
    const [, listed = ""] = text.split(`<code>${databaseId}</code>`);
    expect(listed).toContain(`href="/operator/accounts/${await ownerOf(key)}"`);
    expect(listed).toContain("3 times");
    expect(listed).toContain("The store is full.");
    await bindings.DB.prepare("UPDATE databases SET backup_failures = 0 WHERE id = ?").bind(databaseId).run();
    expect((await row())[0]).not.toContain("Backups that fail");
  });

  it("tells the owner of a suspended account why nothing runs, and blames no invoice", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    const { body } = await api<DatabaseCreated>(key, "POST", "/databases", { name: "kept", type: "redis" });
    await pay(body.invoiceToken);
    const { visitor: owner } = await signedIn(key);
    await me.send(`/operator/accounts/${await ownerOf(key)}`, "suspend", { reason: "Sends spam." });
    const pages = [
      "/",
      `/sites/${siteId}`,
      `/databases/${body.databaseId}`,
      `/databases/${body.databaseId}/settings`,
    ];
    for (const path of pages) {
      const { status, text } = await owner.get(path);
      expect(status).toBe(200);
      expect(text).toContain("Your account is suspended: Sends spam.");
      expect(text).not.toMatch(/its invoice is paid|term has ended|renewal is paid/);
    }
  });

  it("says on every page that it is another's dashboard that an operator sees, and ends it by a click", async () => {
    const key = await account();
    const { email, id } = (await api<OwnAccount>(key, "GET", "/account")).body;
    const cookie = await operatorCookie();
    const headers = { Origin: siteUrl, Cookie: cookie };
    const started = await call("/view-as", {
      method: "POST",
      redirect: "manual",
      headers,
      body: new URLSearchParams({ accountId: id }),
    });
    const viewer = visitorWith(`${cookie}; ${started.headers.get("Set-Cookie")?.split(";")[0]}`);
    for (const path of ["/", "/sites", "/billing"]) {
      const { text } = await viewer.get(path);
      expect(text).toContain(`You see the dashboard of ${email}`);
      expect(text).toContain('action="/view-as/end"');
    }
    expect((await me.get("/")).text).not.toContain("/view-as/end");
    // The session is the operator's, whose own account such a form would change.
    const own = operatorLogin.password;
    const forms = [
      ["/account/two-factor", "form=off", `password=${own}`, "code=000000"],
      ["/account", "form=password", `current=${own}`, "password=a new long password"],
      ["/account", "form=email", "email=other@example.com"],
      ["/confirm-email"],
    ] as const;
    for (const [path, ...fields] of forms) {
      const sent = await call(path, {
        method: "POST",
        redirect: "manual",
        headers: { ...headers, Cookie: `${cookie}; ${started.headers.get("Set-Cookie")?.split(";")[0]}` },
        body: new URLSearchParams(fields.join("&")),
      });
      expect([path, fields[0], sent.status, await sent.text()]).toEqual([
        path,
        fields[0],
        path === "/confirm-email" ? 403 : 400,
        expect.stringContaining("can change nothing"),
      ]);
    }
    expect(
      (
        await call("/sign-in", {
          method: "POST",
          redirect: "manual",
          headers: { Origin: siteUrl },
          body: new URLSearchParams(operatorLogin),
        })
      ).status,
    ).toBe(303);
  });

  it("is one change in the record of the customer whose dashboard an operator sees, and each request another entry", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const cookie = await operatorCookie();
    const started = await call("/view-as", {
      method: "POST",
      redirect: "manual",
      headers: { Origin: siteUrl, Cookie: cookie },
      body: new URLSearchParams({ accountId: await ownerOf(key) }),
    });
    const viewer = visitorWith(`${cookie}; ${started.headers.get("Set-Cookie")?.split(";")[0]}`);
    for (const path of ["/", `/sites/${siteId}`]) expect((await viewer.get(path)).status).toBe(200);
    const { visitor: owner } = await signedIn(key);
    for (const path of ["/", "/activity", "/activity?actor=operator"]) {
      const { text } = await owner.get(path);
      expect(text.match(/Looked at the dashboard as the customer/g)).toHaveLength(1);
      expect(text).not.toContain("Get account");
    }
    expect((await owner.get(`/sites/${siteId}`)).text).not.toContain("Get site");
    expect((await owner.get("/activity?only=all")).text).toContain("Get site");
  });

  it("says what a refund does before it is made, and makes it", async () => {
    const key = await account();
    const { invoiceId, invoiceToken, siteId } = await createSite(key);
    const path = `/operator/money/${invoiceId}/refund`;
    expect((await me.get(path)).text).toContain("only a paid one can be refunded");
    await pay(invoiceToken);
    const preview = async () =>
      (await api<RefundPreview>(await operator(), "GET", `/invoices/${invoiceId}/refund`)).body;
    const { paidUntil } = await site(key, siteId);
    expect(await preview()).toMatchObject({
      amountCents: 500,
      refusal: null,
      term: { resourceId: siteId, paidUntil },
    });
    expect((await api(key, "GET", `/invoices/${invoiceId}/refund`)).status).toBe(403);
    expect((await me.get("/operator/money")).text).toContain(`href="${path}"`);
    const shown = (await me.get(path)).text;
    expect(shown).toContain("$5.00");
    expect(shown).toContain(`instead of <time datetime="${paidUntil}"`);
    expect((await api(key, "GET", `/invoices/${invoiceId}`)).body).toMatchObject({ status: "paid" });
    expect((await me.send(path, "refund")).said).toBe("The invoice is refunded.");
    expect((await api(key, "GET", `/invoices/${invoiceId}`)).body).toMatchObject({ status: "refunded" });
    expect(Date.parse((await site(key, siteId)).paidUntil ?? "")).toBeLessThanOrEqual(Date.now());
    expect((await me.get(path)).text).toContain("This invoice is refunded");
    expect((await me.get("/operator/money/invoice_none/refund")).status).toBe(404);
  });

  it("says which bought credits are spent: such a refund is made only if it is confirmed", async () => {
    const key = await account();
    const { invoiceId, invoiceToken } = await buyCredits(key);
    await pay(invoiceToken);
    const path = `/operator/money/${invoiceId}/refund`;
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    await holdCredits(ctx, {
      id: "spent-before",
      accountId: await ownerOf(key),
      amount: 20,
      expiresAt: new Date(Date.now() + 60_000),
    });
    expect((await me.get(path)).text).toMatch(/480 of the 500 bought credits.*20 are spent or held/s);
    expect((await me.send(path, "refund")).status).toBe(409);
    expect((await me.send(path, "refund", { force: "true" })).said).toBe("The invoice is refunded.");
  });

  it("checks the payment processor and says what it found", async () => {
    expect((await me.send("/operator/system", "payments")).said).toContain("its key and its webhook work");
  });

  it("checks the ledger and says what it found", async () => {
    expect((await me.send("/operator/money", "verify")).said).toMatch(
      /^The ledger is consistent: \d+ transfers in/,
    );
  });

  it("changes nothing for a form of another site's", async () => {
    const answer = await call("/operator/hosts", {
      method: "POST",
      redirect: "manual",
      headers: { Origin: "https://evil.example", Cookie: await operatorCookie() },
      body: new URLSearchParams({ form: "create", name: "evil" }),
    });
    expect(answer.status).toBe(403);
    expect(siteUrl).not.toContain("evil");
  });
});
