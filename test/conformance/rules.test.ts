import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  baseUrl,
  createSite,
  newAddress,
  password,
  pay,
  person,
  removeSites,
  send,
  siteInput,
  siteUrl,
  until,
  uniqueName,
  type Created,
  type Person,
  type Site,
} from "./service.ts";

let owner: Person;
beforeAll(async () => void (owner = await person()));
afterAll(removeSites);

const site = async (id: string) => (await send<Site>(owner.session, "GET", `/sites/${id}`)).body;
const patch = (id: string, body: unknown) => send(owner.session, "PATCH", `/sites/${id}`, { body });
const settled = (id: string) =>
  until(
    () => site(id),
    ({ status }) => status !== "DEPLOYING" && status !== "PENDING",
  );
const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describe("sites", () => {
  it("POST creates a PENDING site and an unpaid invoice, and deploys nothing", async () => {
    const { status, headers, body } = await send<Created>(owner.session, "POST", "/sites", {
      body: siteInput(),
    });
    expect(status).toBe(201);
    expect(headers.get("Location")).toContain(body.siteId);
    expect(body).toEqual({
      invoiceToken: expect.stringMatching(/^inv_\w{22,}$/),
      invoiceId: expect.stringMatching(/^invoice_/),
      siteId: expect.stringMatching(/^site_/),
    });
    expect(await site(body.siteId)).toMatchObject({
      status: "PENDING",
      latestDeployment: null,
      currentDeployment: null,
    });
    const invoice = await send(owner.session, "GET", `/invoices/${body.invoiceId}`);
    expect(invoice.body).toMatchObject({
      status: "unpaid",
      kind: "site",
      token: body.invoiceToken,
      resource: { id: body.siteId },
    });
    await send(owner.session, "DELETE", `/sites/${body.siteId}`);
  });

  it("are deployed by themselves once the invoice is paid, once, however often it is paid", async () => {
    const { siteId, invoiceToken, invoiceId } = await createSite(owner.session);
    const paid = await Promise.all(Array.from({ length: 5 }, () => pay(invoiceToken)));
    for (const one of paid) expect([one.status, one.body["status"]]).toEqual([200, "paid"]);
    expect(["DEPLOYING", "FAILED"]).toContain((await site(siteId)).status);
    const deployments = await send<{ data: { trigger: string; number: number }[] }>(
      owner.session,
      "GET",
      `/sites/${siteId}/deployments`,
    );
    expect(deployments.body.data).toEqual([expect.objectContaining({ trigger: "payment", number: 1 })]);
    expect((await send(owner.session, "GET", `/invoices/${invoiceId}`)).body).toMatchObject({
      status: "paid",
      paidAt: expect.stringMatching(iso),
    });
    expect(await settled(siteId)).toMatchObject({
      status: "FAILED",
      latestDeployment: { status: "FAILED", error: expect.any(String) },
    });
  });

  it("take exactly one of action, domain, envVariables and settings", async () => {
    const { siteId } = await createSite(owner.session);
    const both = { action: "stop", envVariables: [{ key: "A", value: "1" }] };
    for (const body of [
      {},
      both,
      { action: "delete" },
      { action: "DEPLOY" },
      { action: "restart", rebuild: true },
      { action: "deploy", rebuild: "yes" },
      { name: "x" },
      { settings: {} },
    ])
      expect([body, (await patch(siteId, body)).status]).toEqual([body, 400]);
  });

  it("refuse actions their state does not allow: unpaid is 402 with the invoice, otherwise 409 with a reason", async () => {
    const { siteId, invoiceToken } = await createSite(owner.session);
    for (const action of ["start", "stop", "restart", "deploy"]) {
      const answer = await patch(siteId, { action });
      expect([answer.status, answer.body]).toEqual([402, { error: "payment_required", invoiceToken }]);
    }
    await pay(invoiceToken);
    await settled(siteId);
    const refused = await patch(siteId, { action: "restart" });
    expect([refused.status, refused.body]).toEqual([409, { error: "conflict", reason: expect.any(String) }]);
  });

  it("are DEPLOYING as soon as deploy is asked for, by action or webhook, and requests collapse into one successor", async () => {
    const { siteId, invoiceToken } = await createSite(owner.session);
    await pay(invoiceToken);
    await settled(siteId);
    const { url } = (await send<{ url: string }>(owner.session, "GET", `/sites/${siteId}/webhook`)).body;
    expect(url).toMatch(/\/webhooks\/deploy\/\S{22,}$/);
    const hooked = await send(null, "POST", url, { address: newAddress() });
    expect([hooked.status, hooked.body]).toEqual([
      202,
      { status: "DEPLOYING", deploymentId: expect.stringMatching(/^dep_/) },
    ]);
    const more = await Promise.all(Array.from({ length: 10 }, () => patch(siteId, { action: "deploy" })));
    for (const { status, body } of more) expect([status, body["status"]]).toEqual([202, "DEPLOYING"]);
    await settled(siteId);
    const { data } = (
      await send<{ data: { status: string }[] }>(
        owner.session,
        "GET",
        `/sites/${siteId}/deployments?limit=100`,
      )
    ).body;
    // The first by payment, the webhook's, and of ten requests at once one or two successors.
    expect(data.length).toBeLessThanOrEqual(5);
  });

  it("keep secret variables to themselves", async () => {
    const { siteId } = await createSite(owner.session);
    const answer = await patch(siteId, {
      envVariables: [
        { key: "PLAIN", value: "seen" },
        { key: "SECRET", value: "never-shown", encrypted: true },
      ],
    });
    expect(answer.body).toEqual({
      envVariables: [
        { key: "PLAIN", value: "seen", encrypted: false, scope: "both" },
        { key: "SECRET", value: null, encrypted: true, scope: "both" },
      ],
      restartRequired: false,
    });
    expect(JSON.stringify(await site(siteId))).not.toContain("never-shown");
    await patch(siteId, { envVariables: [{ key: "PLAIN", value: null }] });
    expect(JSON.stringify(await site(siteId))).not.toContain("seen");
    expect((await patch(siteId, { envVariables: [{ key: "1A", value: "x" }] })).status).toBe(400);
  });

  it("take several changes of different variables at the same moment, and lose none", async () => {
    const { siteId } = await createSite(owner.session);
    const keys = Array.from({ length: 6 }, (_, index) => `KEY_${index}`);
    const answers = await Promise.all(
      keys.map((key) => patch(siteId, { envVariables: [{ key, value: "1" }] })),
    );
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200));
    const { envVariables } = (
      await send<{ envVariables: { key: string }[] }>(owner.session, "GET", `/sites/${siteId}`)
    ).body;
    expect(envVariables.map(({ key }) => key).toSorted()).toEqual(keys);
  });

  it("show a custom domain's TXT record and where to point DNS", async () => {
    const { siteId } = await createSite(owner.session);
    const name = `${uniqueName("www")}.example.com`;
    const { status, body } = await patch(siteId, { domain: name });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        domain: name,
        status: "PENDING_VERIFICATION",
        record: { type: "TXT", name: `_berth-challenge.${name}`, value: expect.any(String) },
        target: expect.any(String),
      }),
    ]);
    expect((await patch(siteId, { domain: { remove: name } })).body).toEqual({ domain: name, removed: true });
  });

  it("are gone for good after DELETE: DELETING, then 404", async () => {
    const { siteId } = await createSite(owner.session);
    const deleted = await send(owner.session, "DELETE", `/sites/${siteId}`);
    expect([deleted.status, deleted.body]).toEqual([202, { id: siteId, status: "DELETING" }]);
    await until(
      async () => (await send(owner.session, "GET", `/sites/${siteId}`)).status,
      (status) => status === 404,
    );
  });

  it("need the fields of their kind of source, and a name of their own", async () => {
    const { name } = siteInput();
    const create = (body: object) => send<Created>(owner.session, "POST", "/sites", { body });
    const wrong = [
      { name },
      { ...siteInput(), githubUrl: "https://github.com/a/b" },
      { ...siteInput(), githubUrl: "user:pass@github.com/a/b" },
      { ...siteInput(), port: 0 },
      { ...siteInput(), port: "3000" },
      { ...siteInput(), billingTerm: 2 },
      { ...siteInput(), name: "Not A Name" },
      { ...siteInput(), packId: "pack_unknown" },
      { ...siteInput(), packId: "" },
      { ...siteInput(), deployType: "zip" },
      { name, deployType: "image", image: "Not An Image" },
    ];
    for (const body of wrong) expect([body, (await create(body)).status]).toEqual([body, 400]);
    for (const body of [
      { name: uniqueName("conf"), deployType: "image", image: "registry.invalid/a/b:1" },
      { name: uniqueName("conf"), deployType: "dockerfile", dockerfile: "FROM alpine\n" },
    ]) {
      const { status, body: created } = await create(body);
      expect(status).toBe(201);
      expect((await create(body)).status).toBe(409);
      await send(owner.session, "DELETE", `/sites/${created.siteId}`);
    }
  });
});

describe("databases", () => {
  it("are closed to the internet until their owner opens them, to a list that is written right, once they are paid", async () => {
    const created = await send<{ databaseId: string; invoiceToken: string }>(
      owner.session,
      "POST",
      "/databases",
      { body: { name: uniqueName("data"), type: "redis" } },
    );
    const path = `/databases/${created.body.databaseId}`;
    expect((await send(owner.session, "GET", path)).body).toMatchObject({
      publicAccess: { enabled: false, allow: [], applied: true, host: null, port: null, error: null },
    });
    const open = (allow: unknown) =>
      send(owner.session, "PATCH", path, { body: { publicAccess: { enabled: true, allow } } });
    for (const wrong of ["0.0.0.0/0", ["203.0.113.5/24"], ["example.com"], [""], [null]])
      expect([wrong, (await open(wrong)).status]).toEqual([wrong, 400]);
    const unpaid = await open(["203.0.113.0/24"]);
    expect([unpaid.status, unpaid.body["invoiceToken"]]).toEqual([402, created.body.invoiceToken]);
    await send(owner.session, "DELETE", path);
  });
});

describe("the deploy webhook", () => {
  it("is not found at another address, nor at its old one after it was rotated", async () => {
    const { siteId, invoiceToken } = await createSite(owner.session);
    const { url } = (await send<{ url: string }>(owner.session, "GET", `/sites/${siteId}/webhook`)).body;
    const post = (to: string) => send(null, "POST", to, { address: newAddress() });
    expect((await post(url)).status).toBe(402);
    await pay(invoiceToken);
    expect((await post(`${url}x`)).status).toBe(404);
    const rotated = (await send<{ url: string }>(owner.session, "POST", `/sites/${siteId}/webhook/rotate`))
      .body;
    expect(rotated.url).not.toBe(url);
    const gone = await post(url);
    expect([gone.status, gone.body]).toEqual([404, { error: "Not found" }]);
    expect((await post(rotated.url)).status).toBe(202);
  });

  it("ignores its body but a ping and pushes to other branches, and takes no more than 1 MiB", async () => {
    const { siteId, invoiceToken } = await createSite(owner.session);
    await pay(invoiceToken);
    const { url } = (await send<{ url: string }>(owner.session, "GET", `/sites/${siteId}/webhook`)).body;
    const post = (text: string, headers: Record<string, string> = {}) =>
      send(null, "POST", url, { text, headers, address: newAddress() });
    expect((await post("{ not json", { "Content-Type": "text/plain" })).status).toBe(202);
    const ping = await post(`{"zen":"z"}`, { "X-GitHub-Event": "ping" });
    expect([ping.status, ping.body["skipped"]]).toEqual([200, true]);
    const other = await post(`{"ref":"refs/heads/other"}`, { "X-GitHub-Event": "push" });
    expect([other.status, other.body["skipped"]]).toEqual([200, true]);
    expect((await post(`{"ref":"refs/heads/main"}`, { "X-GitHub-Event": "push" })).status).toBe(202);
    expect((await post("x".repeat(1024 * 1024 + 1))).status).toBe(413);
  });
});

describe("device login", () => {
  const start = async () =>
    (
      await send<{ device_code: string; user_code: string; verification_url: string }>(
        null,
        "POST",
        "/auth/device",
        {
          body: { clientName: "Conformance" },
          address: newAddress(),
        },
      )
    ).body;
  const poll = (code: string) =>
    send<{ status: string; token?: string }>(
      null,
      "GET",
      `/auth/device-poll?code=${encodeURIComponent(code)}`,
      {
        address: newAddress(),
      },
    );
  const decide = (who: Person, code: string, decision: "approve" | "deny") =>
    fetch(`${siteUrl}/device`, {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: who.session.cookie, Origin: siteUrl },
      body: new URLSearchParams({ code, decision }),
    });

  it("starts with the three fields of the spec, and grants nothing by itself", async () => {
    const started = await start();
    expect(started).toMatchObject({
      device_code: expect.any(String),
      user_code: expect.stringMatching(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/),
      verification_url: `${siteUrl}/device?code=${started.user_code}`,
      expires_in: 600,
    });
    expect((await poll(started.device_code)).body).toEqual({ status: "pending" });
    expect((await send({ key: started.device_code }, "GET", "/sites")).status).toBe(401);
  });

  it("gives a permanent key of the person who approves, to one poll of a hundred", async () => {
    const started = await start();
    const polls = Array.from({ length: 50 }, () => poll(started.device_code));
    expect((await decide(owner, started.user_code, "approve")).status).toBe(200);
    const answers = await Promise.all([
      ...polls,
      ...Array.from({ length: 50 }, () => poll(started.device_code)),
    ]);
    const tokens = answers.flatMap(({ body }) => body.token ?? []);
    expect(tokens.length).toBe(1);
    const [key = ""] = tokens;
    expect(key).toMatch(/^sk_/);
    expect((await send({ key }, "GET", "/sites")).status).toBe(200);
    const { data } = (await send<{ data: { origin: string }[] }>(owner.session, "GET", "/keys")).body;
    expect(data.filter(({ origin }) => origin === "device").length).toBe(1);
  });

  it("is not found once denied or consumed, nor for a code nobody started; no code is 400", async () => {
    const denied = await start();
    await decide(owner, denied.user_code, "deny");
    for (const code of [denied.device_code, denied.user_code, "unknown"]) {
      const { status, body } = await poll(code);
      expect([code, status, body]).toEqual([code, 404, { error: "Not found" }]);
    }
    expect((await send(null, "GET", "/auth/device-poll", { address: newAddress() })).status).toBe(400);
  });

  it("limits the polls of one code to 60 a minute", async () => {
    const { device_code } = await start();
    const answers = await Promise.all(Array.from({ length: 61 }, () => poll(device_code)));
    expect(answers.filter(({ status }) => status === 429).length).toBe(1);
  });
});

describe("API keys", () => {
  it("start with sk_, are shown once, and reach what their account may", async () => {
    const { key, id } = await owner.newKey();
    expect(key).toMatch(/^sk_[0-9A-Za-z]{40,}$/);
    const listed = await send(owner.session, "GET", "/keys?limit=100");
    expect(JSON.stringify(listed.body)).toContain(id);
    expect(JSON.stringify(listed.body)).not.toContain(key);
    const { siteId } = await createSite(owner.session);
    expect((await send({ key }, "GET", `/sites/${siteId}`)).status).toBe(200);
  });

  it("admit exactly 60 of 1,000 requests made at once, and say what is left", async () => {
    const { key } = await owner.newKey();
    const answers = await Promise.all(
      Array.from({ length: 1000 }, () => send({ key }, "GET", "/sites?limit=1")),
    );
    expect(answers.filter(({ status }) => status === 200).length).toBe(60);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBe(940);
    for (const { body, headers } of refused) {
      expect(body).toEqual({ error: "rate_limited" });
      expect(headers.get("Retry-After")).toMatch(/^\d+$/);
    }
    const admitted = answers.filter(({ status }) => status === 200);
    expect(new Set(admitted.map(({ headers }) => headers.get("RateLimit-Policy")))).toEqual(
      new Set(['"key";q=60;w=60']),
    );
    const left = admitted.map(({ headers }) =>
      Number(/^"key";r=(\d+);t=\d+$/.exec(headers.get("RateLimit") ?? "")?.[1]),
    );
    expect(left.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index));
  });

  it("reach the assistant ten times a minute on the free plan, and everything else all the same", async () => {
    const who = await person();
    const say = () => send(who.session, "POST", "/chat", { body: { message: "hello" } });
    const answers = await Promise.all(Array.from({ length: 12 }, say));
    expect(answers.filter(({ status }) => status === 429).length).toBe(2);
    expect((await send(who.session, "GET", "/sites")).status).toBe(200);
  });

  it("are counted apart from each other and from the session", async () => {
    const [first, second] = [await owner.newKey(), await owner.newKey()];
    await Promise.all(Array.from({ length: 61 }, () => send(first, "GET", "/sites?limit=1")));
    expect((await send(first, "GET", "/sites")).status).toBe(429);
    expect((await send(second, "GET", "/sites")).status).toBe(200);
    expect((await send(owner.session, "GET", "/sites")).status).toBe(200);
  });
});

describe("accounts", () => {
  const post = (path: string, body: object, address = newAddress()) =>
    send(null, "POST", `${siteUrl}/api/auth${path}`, { body, headers: { Origin: siteUrl }, address });

  it("are one for each e-mail, and where addresses are confirmed nobody is told which have one", async () => {
    const again = await post("/sign-up/email", {
      name: "Again",
      email: owner.email,
      password: "another password",
    });
    expect([200, 409]).toContain(again.status);
    expect(again.headers.get("Set-Cookie")).toBeNull();
    if (again.status === 200) {
      const fresh = `${uniqueName("fresh")}@example.com`;
      const first = await post("/sign-up/email", {
        name: "First",
        email: fresh,
        password: "another password",
      });
      expect([first.status, first.body]).toEqual([200, again.body]);
      const wrong = await post("/sign-in/email", { email: owner.email, password: "another password" });
      const unconfirmed = await post("/sign-in/email", { email: fresh, password: "another password" });
      expect([unconfirmed.status, unconfirmed.body]).toEqual([wrong.status, wrong.body]);
    }
    expect((await post("/sign-in/email", { email: owner.email, password })).status).toBe(200);
  });

  it("are refused in the same words as everything else", async () => {
    const bad = await post("/sign-up/email", {
      name: "Short",
      email: "short@example.com",
      password: "short",
    });
    expect([bad.status, bad.body]).toMatchObject([
      400,
      { error: "invalid_request", issues: [{ path: "password", message: expect.any(String) }] },
    ]);
    const wrong = await post("/sign-in/email", { email: "nobody@example.com", password });
    expect([wrong.status, wrong.body["error"], wrong.headers.get("WWW-Authenticate")]).toEqual([
      401,
      "unauthorized",
      "Bearer",
    ]);
  });

  it("count wrong passwords only; ten of them hold up the right one too", async () => {
    const { email } = await person();
    const address = newAddress();
    const signIn = async (word: string): Promise<Awaited<ReturnType<typeof post>>> => {
      const answer = await post("/sign-in/email", { email, password: word }, address);
      // The queue of passwords is full of others' for a moment.
      if (answer.headers.get("Retry-After") !== "5") return answer;
      await delay(5000);
      return signIn(word);
    };
    for (let round = 0; round < 4; round++) expect((await signIn(password)).status).toBe(200);
    for (let round = 0; round < 10; round++) expect((await signIn("a wrong password")).status).toBe(401);
    const held = await signIn(password);
    expect([held.status, held.body["error"]]).toEqual([429, "rate_limited"]);
    expect(held.headers.get("Retry-After")).toMatch(/^[1-9]\d*$/);
  });
});

describe("conventions", () => {
  it("GET /health and GET /packs ask for nothing", async () => {
    expect((await send(null, "GET", `${siteUrl}/health`)).body).toEqual({
      status: "ok",
      version: expect.any(String),
    });
    const { body } = await send<{ data: { amountCents: number; kind: string }[] }>(null, "GET", "/packs");
    const prices = body.data.filter(({ kind }) => kind === "site").map(({ amountCents }) => amountCents);
    expect(prices.length).toBeGreaterThan(0);
    expect(prices).toEqual(prices.toSorted((a, b) => a - b));
  });

  it("lists are newest first, in pages that lose and repeat nothing", async () => {
    const who = await person();
    const made: string[] = [];
    for (let count = 0; count < 5; count++) made.unshift((await createSite(who.session)).siteId);
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      type Page = { data: { id: string }[]; nextCursor: string | null };
      const search: string = cursor && `&cursor=${cursor}`;
      const { body }: { body: Page } = await send<Page>(who.session, "GET", `/sites?limit=2${search}`);
      expect(body.data.length).toBeLessThanOrEqual(2);
      seen.push(...body.data.map(({ id }) => id));
      cursor = body.nextCursor;
    }
    expect(seen).toEqual(made);
  });

  it("lists of what is for sale come in pages as well", async () => {
    type Page = { data: { id: string }[]; nextCursor: string | null };
    for (const path of ["/packs", "/credits/packages"]) {
      const all = (await send<Page>(null, "GET", path)).body;
      expect(all.nextCursor).toBeNull();
      const seen: { id: string }[] = [];
      for (let cursor: string | null = ""; cursor !== null;) {
        const search: string = cursor && `&cursor=${cursor}`;
        const { body }: { body: Page } = await send<Page>(null, "GET", `${path}?limit=2${search}`);
        expect(body.data.length).toBeLessThanOrEqual(2);
        seen.push(...body.data);
        cursor = body.nextCursor;
      }
      expect(seen).toEqual(all.data);
    }
  });

  it("a cursor is one that the list gave: that of another list is 400", async () => {
    const { siteId } = await createSite(owner.session);
    for (const path of ["/databases", "/invoices", "/keys", "/packs", "/backups"]) {
      const { status, body } = await send(owner.session, "GET", `${path}?cursor=${siteId}`);
      expect([path, status, body["error"]]).toEqual([path, 400, "invalid_request"]);
    }
    expect((await send(owner.session, "GET", `/sites?cursor=${siteId}`)).status).toBe(200);
  });

  it("the media type is JSON however it is written", async () => {
    const { siteId } = await createSite(owner.session);
    for (const type of [
      "application/json; charset=utf-8",
      "application/json ; charset=utf-8",
      "Application/JSON",
    ]) {
      const { status } = await send(owner.session, "PATCH", `/sites/${siteId}`, {
        body: { envVariables: [{ key: "A", value: type }] },
        headers: { "Content-Type": type },
      });
      expect([type, status]).toEqual([type, 200]);
    }
  });

  it("every answer carries a request id, and keeps a client's own", async () => {
    const own = await send(null, "GET", "/packs", { headers: { "X-Request-Id": "client-made-1" } });
    expect(own.headers.get("X-Request-Id")).toBe("client-made-1");
    const strange = await send(null, "GET", "/packs", { headers: { "X-Request-Id": "a b\tc" } });
    expect(strange.headers.get("X-Request-Id")).toMatch(/^[\w-]{8,64}$/);
    const missing = await send(null, "GET", `${baseUrl}/nothing-here`);
    expect([missing.status, missing.headers.get("X-Request-Id")]).toEqual([401, expect.any(String)]);
    for (const url of [`${siteUrl}/health`, `${siteUrl}/api/auth/get-session`, `${siteUrl}/api/auth/nothing`])
      expect([url, (await send(null, "GET", url)).headers.get("X-Request-Id")]).toEqual([
        url,
        expect.stringMatching(/^[\w-]{8,64}$/),
      ]);
  });

  it("Idempotency-Key replays the first answer, runs concurrent ones once, and refuses another body", async () => {
    const headers = { "Idempotency-Key": uniqueName("once") };
    const body = siteInput();
    const make = (sent: object) => send<Created>(owner.session, "POST", "/sites", { body: sent, headers });
    const answers = await Promise.all(Array.from({ length: 5 }, () => make(body)));
    const first = answers.find(({ status, headers: h }) => status === 201 && !h.has("Idempotency-Replayed"));
    expect(first).toBeDefined();
    for (const { status } of answers) expect([201, 409]).toContain(status);
    const replay = await make(body);
    expect([replay.status, replay.body, replay.headers.get("Idempotency-Replayed")]).toEqual([
      201,
      first?.body,
      "true",
    ]);
    expect(replay.headers.get("Location")).toBe(first?.headers.get("Location"));
    const other = await make({ ...body, port: 4000 });
    expect([other.status, other.body]).toEqual([422, { error: "idempotency_mismatch" }]);
    await send(owner.session, "DELETE", `/sites/${first?.body.siteId ?? ""}`);
  });

  it("a refusal is heard also by whoever is still sending", async () => {
    for (const bytes of [300_000, 2_000_000])
      for (let round = 0; round < 30; round++) {
        const { status } = await send(null, "POST", "/sites", { text: "x".repeat(bytes) });
        expect([bytes, status]).toEqual([bytes, 401]);
      }
  });

  it("a refusal is told at once to whoever has not sent the body yet", async () => {
    const { hostname, port, protocol, host } = new URL(siteUrl);
    const isPlain = protocol === "http:";
    const to = { host: hostname, port: Number(port || (isPlain ? 80 : 443)), servername: hostname };
    const socket = isPlain ? connect(to) : connectTls(to);
    socket.write(`POST /api/v1/sites HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`);
    socket.write("Content-Length: 500000\r\n\r\n{");
    const begun = Date.now();
    let told = "";
    for await (const part of socket) {
      told += String(part);
      if (told.includes("unauthorized")) break;
    }
    expect(told).toMatch(/^HTTP\/1\.1 401 /);
    expect(Date.now() - begun).toBeLessThan(20_000);
    socket.destroy();
  });

  it("unknown addresses are 404 Not found", async () => {
    const { status, body } = await send(owner.session, "GET", "/nothing-here");
    const reason = expect.stringContaining("no operation GET /api/v1/nothing-here");
    expect([status, body]).toEqual([404, { error: "Not found", reason }]);
  });

  it("pages for people say no to browsers in HTML, and the reference is there", async () => {
    const page = await fetch(`${siteUrl}/nothing-here`, { headers: { Accept: "text/html" } });
    expect([page.status, page.headers.get("Content-Type")]).toEqual([
      404,
      expect.stringContaining("text/html"),
    ]);
    expect((await fetch(`${siteUrl}/docs`)).status).toBe(200);
  });
});
