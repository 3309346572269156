import { describe, expect, it } from "vitest";
import type { Account, AccountForOperator } from "../../protocol/api/accounts.ts";
import type { Page } from "../../protocol/api/common.ts";
import type {
  DatabaseForOperator,
  InvoiceForOperator,
  Job,
  SiteForOperator,
} from "../../protocol/api/console.ts";
import { ownerOf } from "./assistant.ts";
import { reapAt, tickAt } from "./terms-service.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  fail,
  finish,
  hostIn,
  newSession,
  operator,
  operatorCookie,
  pay,
  readyAgent,
  run,
  runningSite,
  site,
  siteUrl,
  uniqueName,
} from "./service.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";
const list = async <Item>(path: string) => (await api<Page<Item>>(await operator(), "GET", path)).body;

describe("an operator", () => {
  it("finds an account by any part of its id, name or address, and sees what it has and owes", async () => {
    const key = await account();
    const id = await ownerOf(key);
    await run("UPDATE accounts SET name = 'O''Brien 100%_x' WHERE id = ?", id);
    const region = uniqueName("r");
    await hostIn(region);
    const paid = await createSite(key, { region });
    await pay(paid.invoiceToken);
    await createSite(key);
    await api(await operator(), "POST", "/credits/grants", { accountId: id, amount: 7 });
    for (const search of ["o'brien 100%_X", id.slice(4), `${id}@example.com`])
      expect((await list<Account>(`/accounts?search=${encodeURIComponent(search)}`)).data).toMatchObject([
        { id },
      ]);
    expect((await list("/accounts?search=100%25%25x")).data).toEqual([]);
    const { body } = await api<AccountForOperator>(await operator(), "GET", `/accounts/${id}`);
    expect(body).toMatchObject({
      id,
      siteCount: 2,
      databaseCount: 0,
      keyCount: 1,
      sessionCount: 0,
      credits: { balance: 7, held: 0 },
      money: [{ currency: "usd", paidCents: 500, unpaidCents: 500, unpaidCount: 1 }],
      lastChangeAt: expect.any(String) as string,
    });
  });

  it("lists the sites of all accounts with owner and host, by status, host, account, name, address and domain", async () => {
    const [key, other, on] = [await account(), await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on, { name: "needle-in-hay" });
    const { siteId: unpaid } = await createSite(other);
    const accountId = await ownerOf(key);
    const { url } = await site(key, siteId);
    expect((await list<SiteForOperator>(`/sites/all?accountId=${accountId}`)).data).toMatchObject([
      {
        id: siteId,
        accountId,
        accountEmail: `${accountId}@example.com`,
        status: "RUNNING",
        hostId: on.hostId,
        hostOffline: false,
        url,
      },
    ]);
    const ids = async (query: string) =>
      (await list<SiteForOperator>(`/sites/all?${query}`)).data.map(({ id }) => id);
    expect(await ids(`hostId=${on.hostId}`)).toEqual([siteId]);
    expect(await ids("search=EDLE-IN")).toEqual([siteId]);
    expect(await ids(`search=${new URL(url).hostname.split(".")[0]}`)).toEqual([siteId]);
    expect(await ids(`status=PENDING&accountId=${await ownerOf(other)}`)).toEqual([unpaid]);
    const page = await list<SiteForOperator>("/sites/all?limit=1");
    expect(page.data).toHaveLength(1);
    const next = await list<SiteForOperator>(`/sites/all?limit=1&cursor=${page.nextCursor}`);
    expect(next.data[0]?.id).not.toBe(page.data[0]?.id);
  });

  it("lists the databases and invoices of all accounts in the same way", async () => {
    const key = await account();
    const accountId = await ownerOf(key);
    const name = uniqueName("data");
    const { body } = await api<{ databaseId: string; invoiceId: string }>(key, "POST", "/databases", {
      name,
      type: "redis",
    });
    const found = (await list<DatabaseForOperator>(`/databases/all?search=${name}&status=PENDING`)).data;
    expect(found).toMatchObject([{ id: body.databaseId, accountId, type: "redis", hostId: null }]);
    for (const filter of [`accountId=${accountId}`, `search=${body.databaseId}`])
      expect(
        (await list<InvoiceForOperator>(`/invoices/all?status=unpaid&kind=database&${filter}`)).data,
      ).toMatchObject([{ id: body.invoiceId, accountId, accountEmail: `${accountId}@example.com` }]);
    expect((await list(`/invoices/all?status=paid&accountId=${accountId}`)).data).toEqual([]);
    await readyAgent();
    const { invoiceId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    const [paid] = (await list<InvoiceForOperator>(`/invoices/all?search=${invoiceId}`)).data;
    const numbered = (await list<InvoiceForOperator>(`/invoices/all?search=${paid?.number}`)).data;
    expect(numbered.map(({ id }) => id)).toContain(invoiceId);
  });

  it("alone sees these lists, and an unknown filter is refused", async () => {
    const key = await account();
    for (const path of ["/sites/all", "/databases/all", "/invoices/all", "/jobs", "/accounts"]) {
      expect((await api(key, "GET", path)).status).toBe(403);
      for (const query of ["?hostId=x", "?status=LOST", "?state=lost", "?search="])
        expect((await api(await operator(), "GET", path + query)).status).toBe(400);
    }
    expect((await api(key, "GET", `/accounts/${await ownerOf(key)}`)).status).toBe(403);
    expect((await api(await operator(), "GET", "/accounts/acc_none")).status).toBe(404);
  });
});

describe("the queue", () => {
  const jobsOf = async (key: string, query = "") =>
    (await list<Job>(`/jobs?accountId=${await ownerOf(key)}${query}`)).data;
  const cancel = async (id: string | undefined) =>
    api<Job & { reason?: string }>(await operator(), "POST", `/jobs/${id}/cancel`);

  it("says why a job waits: no host, a host that is silent, the same site's earlier job, a slot", async () => {
    const [key, region] = [await account(), uniqueName("r")];
    await hostIn(region);
    const { siteId, invoiceToken } = await createSite(key, { region });
    await pay(invoiceToken);
    const [waits] = await jobsOf(key);
    expect(waits).toMatchObject({
      kind: "site.deploy",
      status: "QUEUED",
      siteId,
      hostId: null,
      stuck: false,
      cancellable: true,
      waitsFor: { code: "no_host", reason: expect.stringContaining("No connected host") as string },
    });
    const waitsFor = async () => (await jobsOf(key))[0]?.waitsFor?.code;
    const on = await readyAgent(0);
    await run("UPDATE hosts SET slots = NULL WHERE id = ?", on.hostId);
    await run("UPDATE sites SET region = NULL WHERE id = ?", siteId);
    expect(await waitsFor()).toBe("slot");
    await run("UPDATE jobs SET host_id = ? WHERE id = ?", on.hostId, waits?.id);
    expect(await waitsFor()).toBe("slot");
    await run("UPDATE hosts SET offline_since = 1 WHERE id = ?", on.hostId);
    expect(await waitsFor()).toBe("host");
    expect(await jobsOf(key, "&state=stuck")).toMatchObject([{ id: waits?.id, stuck: true }]);
    await run("UPDATE hosts SET offline_since = NULL WHERE id = ?", on.hostId);
    expect(await jobsOf(key, "&state=stuck")).toEqual([]);
    await run("UPDATE jobs SET created_at = created_at - 600001 WHERE id = ?", waits?.id);
    expect(await jobsOf(key, "&state=stuck")).toMatchObject([{ id: waits?.id, waitsFor: { code: "slot" } }]);
    await run("UPDATE jobs SET lane = 'other' WHERE id = ?", waits?.id);
    await run(
      `INSERT INTO jobs (id, kind, status, lane, account_id, deadline_at, created_at)
      VALUES (?, 'site.stop', 'LEASED', 'other', 'acc_other', 1, 1)`,
      uniqueName("job"),
    );
    expect(await waitsFor()).toBe("turn");
  });

  it("lets an operator cancel what has not begun, and ask a host to stop a deployment", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId, deploymentId } = await (async () => {
      const made = await runningSite(key, on);
      const { body } = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${made.siteId}`, {
        action: "deploy",
      });
      return { ...made, ...body };
    })();
    const { job, attempt } = await on.next("job");
    expect(await cancel(job.id)).toMatchObject({
      status: 202,
      body: { cancelRequested: true, status: "LEASED" },
    });
    expect(await on.next("cancel")).toMatchObject({ jobId: job.id, attempt });
    on.send({ type: "failed", jobId: job.id, attempt, error: "x", cancelled: true, durations: null });
    await on.next("ack");
    expect(await cancel(job.id)).toMatchObject({ status: 409 });
    expect((await api(key, "GET", `/deployments/${deploymentId}`)).body["status"]).toBe("CANCELLED");

    on.send({ type: "ready", free: 0, freeCommands: 0, freeShort: 0 });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const [queued] = await jobsOf(key, "&state=waiting");
    expect(await cancel(queued?.id)).toMatchObject({ status: 202, body: { status: "CANCELLED" } });
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect((await jobsOf(key, "&state=ended"))[0]).toMatchObject({
      id: queued?.id,
      finishedAt: expect.any(String),
    });
    const { body } = await api<Page<{ operation: string; actor: string }>>(key, "GET", "/activity");
    expect(body.data[0]).toMatchObject({ operation: "cancelJob", actor: "operator", resourceId: queued?.id });
  });

  it("lets an operator ask again for a failed deployment, of its commit, and once", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const retry = async (id: string | undefined) =>
      api<Job & { reason?: string }>(await operator(), "POST", `/jobs/${id}/retry`);
    const [done] = await jobsOf(key, "&state=ended");
    expect(await retry(done?.id)).toMatchObject({ status: 409 });
    expect(await retry("job_none")).toMatchObject({ status: 404 });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const first = await on.next("job");
    const failed = first.job.id;
    await run(
      "UPDATE deployments SET commit_sha = ? WHERE id = (SELECT deployment_id FROM jobs WHERE id = ?)",
      commit,
      failed,
    );
    on.send({
      type: "failed",
      jobId: failed,
      attempt: first.attempt,
      error: "x",
      cancelled: false,
      durations: null,
    });
    await on.next("ack");
    expect((await jobsOf(key, "&state=ended"))[0]).toMatchObject({ id: failed, retryable: true });
    const id = await ownerOf(key);
    const suspended = "UPDATE accounts SET suspended_at = ? WHERE id = ?";
    await run(suspended, 1, id);
    expect(await retry(failed)).toMatchObject({
      status: 409,
      body: { reason: expect.stringMatching(/suspended/) as string },
    });
    await run(suspended, null, id);
    await run("UPDATE sites SET wanted = 'STOPPED' WHERE id = ?", siteId);
    expect(await retry(failed)).toMatchObject({
      status: 409,
      body: { reason: expect.stringMatching(/stopped it since/) as string },
    });
    await run("UPDATE sites SET wanted = 'RUNNING' WHERE id = ?", siteId);
    expect((await api(key, "POST", `/jobs/${failed}/retry`)).status).toBe(403);
    on.send({ type: "ready", free: 1, freeCommands: 0, freeShort: 0 });
    const { status, body } = await retry(failed);
    expect([status, body.kind, body.siteId, body.id === failed]).toEqual([202, "site.deploy", siteId, false]);
    expect((await on.next("job")).job).toMatchObject({ args: { source: { commit } } });
    expect(await retry(failed)).toMatchObject({
      status: 409,
      body: { reason: expect.stringMatching(/Something newer/) as string },
    });
    const { data } = (await api<Page<{ operation: string; actor: string }>>(key, "GET", "/activity")).body;
    expect(data[0]).toMatchObject({ operation: "retryJob", actor: "operator" });
  });

  it("asks again for the branch and the build that a deployment was asked for, whose commit never became known", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on, { branch: "main" });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy", ref: "hotfix", rebuild: true });
    const first = await on.next("job");
    await fail(on, first.job, first.attempt);
    expect((await api(await operator(), "POST", `/jobs/${first.job.id}/retry`)).status).toBe(202);
    expect((await on.next("job")).job).toMatchObject({
      kind: "site.deploy",
      args: { source: { branch: "hotfix" }, rebuild: true },
    });
    on.close();
  });

  it("does not repeat a rollback, or what only its owner may ask for", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const [job] = await jobsOf(key, "&state=ended");
    const retry = async () =>
      (await api<{ reason?: string }>(await operator(), "POST", `/jobs/${job?.id}/retry`)).body.reason;
    await run("UPDATE jobs SET status = 'FAILED' WHERE id = ?", job?.id);
    await run(`UPDATE deployments SET "trigger" = 'rollback' WHERE site_id = ?`, siteId);
    expect(await retry()).toContain("rollback");
    for (const kind of ["site.command", "site.delete", "database.restore", "database.rotate"]) {
      await run("UPDATE jobs SET kind = ? WHERE id = ?", kind, job?.id);
      expect(await retry()).toContain("is not repeated");
    }
  });

  it("does not let a stop or a deletion be cancelled, and tells what it refuses", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    on.send({ type: "ready", free: 0, freeCommands: 0, freeShort: 0 });
    await api(key, "DELETE", `/sites/${siteId}`);
    const [queued] = await jobsOf(key);
    expect(queued).toMatchObject({ kind: "site.delete", cancellable: false });
    expect(await cancel(queued?.id)).toMatchObject({ status: 409, body: { reason: expect.any(String) } });
    expect(await cancel("job_none")).toMatchObject({ status: 404 });
  });
});

/** A session of the key's account. */
const sessionOf = async (key: string): Promise<string> => (await newSession(await ownerOf(key))).cookie;
const asSession = (cookie: string, method: string, path: string, body?: object) =>
  call(`/api/v1${path}`, {
    method,
    headers: {
      Cookie: cookie,
      Origin: siteUrl,
      ...(body && { "Content-Type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });

describe("a suspended account", () => {
  const suspend = async (id: string, reason = "It sends spam.") =>
    api<Account & { reason?: string }>(await operator(), "POST", `/accounts/${id}/suspend`, { reason });
  const release = async (id: string) => api<Account>(await operator(), "POST", `/accounts/${id}/release`);

  it("has its sites stopped and its keys refused with the reason; its owner still reads, and changes nothing", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const [id, cookie] = [await ownerOf(key), await sessionOf(key)];
    const { siteId } = await runningSite(key, on);
    expect(await suspend(id)).toMatchObject({
      status: 200,
      body: { suspended: { reason: "It sends spam." } },
    });
    expect(await suspend(id, "Another reason.")).toMatchObject({
      body: { suspended: { reason: "It sends spam." } },
    });
    const { job, attempt } = await on.next("job");
    expect(job).toMatchObject({
      kind: "site.stop",
      args: { siteId, notice: { reason: "suspended", payUrl: null } },
    });
    await finish(on, job, attempt);
    for (const [method, path] of [
      ["GET", "/sites"],
      ["POST", "/sites"],
      ["GET", "/packs"],
    ] as const) {
      const { status, body } = await api(key, method, path, method === "POST" ? {} : undefined);
      expect([status, body["reason"]]).toEqual([403, expect.stringContaining("It sends spam.")]);
    }
    expect(await (await asSession(cookie, "GET", `/sites/${siteId}`)).json()).toMatchObject({
      status: "SUSPENDED",
    });
    expect(await (await asSession(cookie, "GET", "/account")).json()).toMatchObject({
      suspended: { reason: "It sends spam." },
    });
    const refused = await asSession(cookie, "PATCH", `/sites/${siteId}`, { action: "start" });
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ reason: expect.stringContaining("It sends spam.") as string }),
    ]);
    const { results } = await bindings.DB.prepare("SELECT subject FROM mails WHERE account_id = ?")
      .bind(id)
      .all();
    expect(results).toEqual([{ subject: "Your account is suspended" }]);
    expect((await list<Account>(`/accounts?suspended=1&search=${id}`)).data).toMatchObject([{ id }]);
    expect((await list<Account>(`/accounts?suspended=0&search=${id}`)).data).toEqual([]);
  });

  it("that is released gets back what ran, not what its owner had stopped, and its keys work at once", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const id = await ownerOf(key);
    const [runs, stopped] = [await runningSite(key, on), await runningSite(key, on)];
    await api(key, "PATCH", `/sites/${stopped.siteId}`, { action: "stop" });
    const next = async () => {
      const { job, attempt } = await on.next("job");
      await finish(on, job, attempt);
      return [job.kind, (job.args as { siteId?: string }).siteId ?? ""];
    };
    await next();
    await suspend(id);
    await next();
    await next();
    expect((await release(id)).body.suspended).toBeNull();
    expect((await release(id)).status).toBe(200);
    expect([await next(), await next()].map(([kind]) => kind)).toEqual(
      expect.arrayContaining(["site.start", "site.stop"]),
    );
    expect((await site(key, runs.siteId)).status).toBe("RUNNING");
    expect((await site(key, stopped.siteId)).status).toBe("STOPPED");
  });

  it("stays stopped whatever is paid meanwhile, and nothing of it is deleted by the clock", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const id = await ownerOf(key);
    const { siteId } = await runningSite(key, on);
    const region = uniqueName("r");
    await hostIn(region);
    const first = await createSite(key, { region });
    await suspend(id);
    await pay(first.invoiceToken);
    await tickAt(new Date());
    const statusOf = async (one: string) =>
      (await list<SiteForOperator>(`/sites/all?search=${one}`)).data[0]?.status;
    expect(await statusOf(first.siteId)).toBe("SUSPENDED");
    const inAYear = new Date(Date.now() + 365 * 86_400_000);
    await tickAt(inAYear);
    await reapAt(inAYear);
    await tickAt(new Date(inAYear.getTime() + 30 * 86_400_000));
    expect(await statusOf(siteId)).toBe("SUSPENDED");
  });

  it("that is released has thirty days again to pay for what is over, and another warning before it is deleted", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const id = await ownerOf(key);
    const { siteId } = await runningSite(key, on);
    const now = Date.now();
    const inDays = (days: number) => new Date(now + days * 86_400_000);
    const since = inDays(-60).getTime();
    // Not paid for and warned of its deletion when its account was suspended.
    await bindings.DB.batch([
      bindings.DB.prepare(
        "UPDATE sites SET status = 'SUSPENDED', suspended_at = ?1, paid_until = ?1 WHERE id = ?2",
      ).bind(since, siteId),
      bindings.DB.prepare(
        "INSERT INTO mails (id, account_id, subject, text, created_at, try_at, sent_at) VALUES (?1, ?2, 's', 't', ?3, ?3, ?3)",
      ).bind(`deletion:${siteId}:${since}`, id, inDays(-37).getTime()),
    ]);
    await suspend(id);
    await release(id);
    const statusAfter = async (days: number) => {
      await tickAt(inDays(days));
      return (await list<SiteForOperator>(`/sites/all?search=${siteId}`)).data[0]?.status;
    };
    expect([await statusAfter(1), await statusAfter(24), await statusAfter(29)]).toEqual(
      Array(3).fill("SUSPENDED"),
    );
    expect(await statusAfter(32)).toBe("DELETING");
  });

  it("cannot be an operator's, and must be there", async () => {
    expect(await suspend(await ownerOf(await operator()))).toMatchObject({ status: 409 });
    expect((await suspend("acc_none")).status).toBe(404);
    expect((await release("acc_001m80000000000000000000000")).status).toBe(404);
  });
});

describe("an operator who views an account", () => {
  const view = async (accountId: string, method: string, path: string, by?: string, body?: object) => {
    const response = await call(`/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${by ?? (await operator())}`,
        "X-Berth-View-As": accountId,
        ...(body && { "Content-Type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json<Record<string, unknown>>() };
  };

  it("sees what its owner sees, without values of variables, and each look is in the account's activity", async () => {
    const key = await account();
    const id = await ownerOf(key);
    const { siteId } = await createSite(key);
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "TOKEN", value: "canary" }] });
    expect(await view(id, "GET", "/account")).toMatchObject({ status: 200, body: { id } });
    const seen = await view(id, "GET", `/sites/${siteId}`);
    expect(seen).toMatchObject({ status: 200, body: { envVariables: [{ key: "TOKEN", value: "…" }] } });
    const { body } = await api<Page<object>>(key, "GET", "/activity");
    expect(body.data.slice(0, 2)).toMatchObject([
      { operation: "getSite", actor: "operator", resourceId: siteId, outcome: "done" },
      { operation: "getAccount", actor: "operator", actorId: expect.stringMatching(/^key_/) as string },
    ]);
  });

  it("changes nothing, sees no secret, and nothing that is not the account's", async () => {
    const [key, other] = [await account(), await account()];
    const id = await ownerOf(key);
    const { siteId } = await createSite(key);
    const { siteId: foreign } = await createSite(other);
    for (const [method, path, body] of [
      ["PATCH", `/sites/${siteId}`, { action: "deploy" }],
      ["DELETE", `/sites/${siteId}`],
      ["POST", "/chat", { message: "Delete it." }],
      ["GET", `/sites/${siteId}/webhook`],
      ["GET", `/sites/${siteId}/files`],
      ["GET", "/chat/conversations"],
      ["GET", "/accounts"],
      ["GET", `/sites/${foreign}`],
    ] as const)
      expect([method, path, (await view(id, method, path, undefined, body)).status]).toEqual([
        method,
        path,
        403,
      ]);
  });

  it("opens neither a terminal nor a tunnel, and neither does a suspended account", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const id = await ownerOf(key);
    const terminal = async (headers: Record<string, string>) =>
      (await call(`/api/v1/sites/${siteId}/terminal`, { headers: { Upgrade: "websocket", ...headers } }))
        .status;
    const viewer = { Authorization: `Bearer ${await operator()}`, "X-Berth-View-As": id };
    expect(await terminal(viewer)).toBe(403);
    const cookie = await sessionOf(key);
    await api(await operator(), "POST", `/accounts/${id}/suspend`, { reason: "It sends spam." });
    expect(await terminal({ Cookie: cookie, Origin: siteUrl })).toBe(403);
    expect(await terminal({ Authorization: `Bearer ${key}` })).toBe(403);
  });

  it("is an operator: anybody else is refused, and an account that is not there is not found", async () => {
    const [key, other] = [await account(), await account()];
    expect((await view(await ownerOf(other), "GET", "/sites", key)).status).toBe(403);
    expect((await view("acc_001m80000000000000000000000", "GET", "/sites")).status).toBe(404);
    expect((await view("x' OR 1", "GET", "/sites")).status).toBe(404);
  });

  it("does so in a browser by a cookie of half an hour, which is nothing without the operator's session", async () => {
    const [key, cookie] = [await account(), await operatorCookie()];
    const accountId = await ownerOf(key);
    const begin = (as: string, origin = siteUrl) =>
      call("/view-as", {
        method: "POST",
        redirect: "manual",
        headers: { Cookie: as, Origin: origin },
        body: new URLSearchParams({ accountId }),
      });
    expect((await begin(cookie, "https://evil.example")).status).toBe(403);
    expect((await begin(await sessionOf(key))).status).toBe(403);
    const set = (await begin(cookie)).headers.get("Set-Cookie") ?? "";
    expect(set).toMatch(/Max-Age=1800; .*HttpOnly/);
    const viewCookie = set.split(";")[0] ?? "";
    const account_ = await asSession(`${cookie}; ${viewCookie}`, "GET", "/account");
    expect(await account_.json()).toMatchObject({ id: accountId });
    const stranger = await account();
    const others = await asSession(`${await sessionOf(stranger)}; ${viewCookie}`, "GET", "/account");
    expect(await others.json()).toMatchObject({ id: await ownerOf(stranger) });
    const end = await call("/view-as/end", {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: cookie, Origin: siteUrl },
    });
    expect(end.headers.get("Set-Cookie")).toMatch(/berth_view_as=;.*Max-Age=0/);
  });
});
