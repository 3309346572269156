import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { operations, type Operation, type OperationId } from "../../protocol/api/operations.ts";
import { call } from "../../worker/api/call.ts";
import { routesOf } from "../../worker/api/routes.ts";
import { verbs, type VerbId } from "../../worker/api/verbs.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Actor, Ctx } from "../../worker/ctx.ts";
import type { AppError } from "../../worker/domain/app-error.ts";
import { maxBodyBytes } from "../../worker/middleware/body.ts";
import { version } from "../../worker/version.ts";
import { assistantActor } from "./assistant.ts";
import { accountRow, newId, write } from "./billing-rows.ts";
import { ask, guardedKey, keyOf, made, notedLimits } from "./direct.ts";
import { bindings, newSession } from "./service.ts";
import { rows } from "./stripe-service.ts";

// What leads from a request to a verb and from its answer back; the verbs themselves are played.
beforeEach(() => void vi.restoreAllMocks());
afterEach(() => vi.restoreAllMocks());

/** From now on this operation answers so; what it was asked for. */
function played(id: VerbId, answer: unknown = {}): unknown[] {
  const inputs: unknown[] = [];
  const all = verbs as unknown as Record<string, (ctx: Ctx, input: unknown) => Promise<unknown>>;
  vi.spyOn(all, id).mockImplementation(async (_ctx, input) => {
    inputs.push(input);
    return answer;
  });
  return inputs;
}
const recorded = (accountId: string) =>
  rows<{ operation: string; actor: string; outcome: string }>(
    "SELECT operation, actor, outcome FROM activity WHERE account_id = ? ORDER BY id",
    accountId,
  );

/** The API and its account, which comes with a key unless `key` is null. */
async function service(more: object = {}, refusing: Record<string, number> = {}) {
  const actor = keyOf(more);
  const { key, guards } = await guardedKey(actor);
  const { noted, limits } = notedLimits(refusing);
  const env = { ...bindings, ...guards, ...limits };
  const app = made().route("/", routesOf("site")).route("/api/v1", routesOf(undefined));
  const send = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string | null> = {},
  ) => {
    const given = {
      Authorization: `Bearer ${key}`,
      "Content-Type": body === undefined ? null : "application/json",
      ...headers,
    };
    const response = await ask(
      app,
      path,
      {
        method,
        headers: Object.entries(given).filter((one): one is [string, string] => one[1] !== null),
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      },
      env,
    );
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : text,
    };
  };
  return { actor, noted, send };
}
const nobody = { Authorization: null };
const example = (id: OperationId): object | undefined =>
  (operations[id] as { examples?: { body?: object } }).examples?.body;

describe("a call", () => {
  const ctxOf = (actor: Actor) => contextOf(bindings, actor, () => undefined);

  it("of whoever may not make it does nothing, and is not on record", async () => {
    const inputs = played("listSites");
    const accountId = newId("account");
    const refused = async (actor: Actor, id: VerbId) =>
      call(ctxOf(actor), id, {}).catch((error: AppError) => error.code);
    expect(await refused({ type: "link" }, "listSites")).toBe("unauthorized");
    expect(await refused(keyOf({ accountId }), "listAllSites")).toBe("forbidden");
    expect(await refused(keyOf({ accountId, suspendedFor: "Spam." }), "createSite")).toBe("forbidden");
    expect([inputs, await recorded(accountId)]).toEqual([[], []]);
  });

  it("that changes something is on record; one that reads is if an operator looks at somebody else's account", async () => {
    for (const id of ["listSites", "createSite", "inspectSource"] as const) played(id, { id });
    const accountId = newId("account");
    const owner = ctxOf(keyOf({ accountId }));
    const viewer = ctxOf({
      type: "viewer",
      accountId,
      role: "user",
      plan: "free",
      credential: newId("session"),
    });
    for (const id of ["listSites", "inspectSource"] as const)
      expect(await call(owner, id, {})).toEqual({ id });
    expect(await recorded(accountId)).toEqual([]);
    await call(owner, "createSite", {} as never);
    expect(await recorded(accountId)).toEqual([{ operation: "createSite", actor: "key", outcome: "done" }]);
    await call(viewer, "listSites", {} as never);
    expect((await recorded(accountId)).slice(1)).toEqual([
      { operation: "listSites", actor: "operator", outcome: "done" },
    ]);
  });
});

describe("a request", () => {
  const id = newId("site");

  it("reaches its verb with what its path, query and body say, and with nothing else", async () => {
    const { send } = await service();
    const headers = { "Last-Event-ID": "17" };
    const asked = async (verb: VerbId, method: string, path: string, body?: unknown) => {
      const inputs = played(verb, { ok: true });
      expect((await send(method, `/api/v1${path}`, body, headers)).status).toBeLessThan(300);
      return inputs;
    };
    const lists = await asked("listSites", "GET", "/sites?limit=7");
    expect(lists).toStrictEqual([{ limit: 7 }]);
    expect(await asked("getSite", "GET", `/sites/${id}`)).toStrictEqual([{ id }]);
    expect(await asked("patchSite", "PATCH", `/sites/${id}`, { action: "deploy" })).toStrictEqual([
      { action: "deploy", id },
    ]);
    expect(await asked("deleteDomain", "DELETE", `/sites/${id}/domains/example.com`)).toStrictEqual([
      { id, name: "example.com" },
    ]);
    expect(await asked("getDeploymentLogs", "GET", `/deployments/${newId("deployment")}/logs`)).toEqual([
      expect.objectContaining({ lastEventId: "17" }),
    ]);
  });

  it("is answered with the status of what it did, and with where that is", async () => {
    const { send } = await service();
    const siteId = newId("site");
    played("createSite", { siteId, invoiceId: "in" });
    const made = await send("POST", "/api/v1/sites", example("createSite"));
    expect([made.status, made.headers.get("Location"), made.body]).toEqual([
      201,
      `/api/v1/sites/${siteId}`,
      { siteId, invoiceId: "in" },
    ]);
    played("patchSite");
    const acted = await send("PATCH", `/api/v1/sites/${id}`, { action: "deploy" });
    const changed = await send("PATCH", `/api/v1/sites/${id}`, { settings: { port: 4000 } });
    expect([acted.status, changed.status]).toEqual([202, 200]);
    played("getSite", { siteId });
    const shown = await send("GET", `/api/v1/sites/${id}`);
    expect([shown.status, shown.headers.get("Location")]).toEqual([200, null]);
  });

  it("for a stream is answered with events, and for a download with a file", async () => {
    const stream = () => new Blob(["text"]).stream();
    const { send, actor } = await service();
    await write(accountRow(actor.accountId));
    const session = { ...nobody, Cookie: (await newSession(actor.accountId)).cookie };
    const answered = async (verb: VerbId, path: string, headers: Record<string, string | null> = {}) => {
      played(verb, stream());
      const { status, headers: told, body } = await send("GET", `/api/v1${path}`, undefined, headers);
      return [status, told.get("Content-Type"), told.get("Content-Disposition"), body];
    };
    expect(await answered("getSiteLogs", `/sites/${id}/logs`)).toEqual([
      200,
      "text/event-stream",
      null,
      "text",
    ]);
    expect(await answered("exportAccount", "/account/export", session)).toEqual([
      200,
      "application/json",
      'attachment; filename="berth-account.json"',
      "text",
    ]);
  });

  it("that is not as its operation says is refused before its verb is asked", async () => {
    const { send } = await service();
    const inputs = [played("createSite"), played("listSites"), played("getSite")];
    const refused = async (...given: Parameters<typeof send>) => {
      const { status, body } = await send(...given);
      const { issues } = body as { issues?: { path: string }[] };
      return [status, issues?.map(({ path }) => path)];
    };
    const sites = "/api/v1/sites";
    expect(await refused("POST", sites, { ...example("createSite"), port: 0 })).toEqual([400, ["port"]]);
    expect(await refused("POST", sites, "{")).toEqual([400, [""]]);
    expect(await refused("POST", sites, "{}", { "Content-Type": "text/plain" })).toEqual([415, undefined]);
    expect(await refused("POST", sites, " ".repeat(maxBodyBytes + 1))).toEqual([413, undefined]);
    expect(await refused("GET", `${sites}?limit=0`)).toEqual([400, ["limit"]]);
    expect(await refused("GET", `${sites}/${id}?unheardOf=1`)).toEqual([400, ["unheardOf"]]);
    expect(await refused("DELETE", `${sites}/${id}?unheardOf=1`)).toEqual([400, ["unheardOf"]]);
    expect(inputs).toEqual([[], [], []]);
  });

  it("is checked by schemas that whoever lists the routes finds with them", () => {
    const schemasOf = (verb: "createSite" | "listSites") =>
      routesOf(undefined)
        .routes.filter(
          ({ method, path }) =>
            method === operations[verb].method.toUpperCase() && path === operations[verb].path,
        )
        .map(({ handler }) => handler as { target?: string; schema?: unknown })
        .flatMap(({ target, schema }) => (schema === undefined ? [] : [{ target, schema }]));
    expect(schemasOf("createSite")).toEqual([{ target: "json", schema: operations.createSite.body }]);
    expect(schemasOf("listSites")).toEqual([{ target: "query", schema: operations.listSites.query }]);
  });

  it("without a credential is for what needs none, and counts for its address, but a health check for nobody", async () => {
    const { send, noted, actor } = await service();
    played("listPacks", { data: [] });
    played("getSite");
    const asked = async (path: string, headers: Record<string, string | null>) => {
      noted.length = 0;
      return [(await send("GET", path, undefined, headers)).status, [...noted]];
    };
    const address = ["address:192.0.2.1"];
    const from = { "CF-Connecting-IP": "192.0.2.1" };
    expect(await asked("/api/v1/packs", { ...nobody, ...from })).toEqual([200, address]);
    expect(await asked("/api/v1/packs", from)).toEqual([200, []]);
    expect(await asked("/api/v1/packs", { ...from, Authorization: "Bearer sk_none" })).toEqual([401, []]);
    expect(await asked(`/api/v1/sites/${id}`, { ...nobody, ...from })).toEqual([401, []]);
    expect(await asked("/health", { ...nobody, ...from })).toEqual([200, []]);
    expect(await asked("/api/v1/health", { ...nobody, ...from })).toEqual([404, []]);
    expect(await asked("/sites", from)).toEqual([404, []]);
    expect(await recorded(actor.accountId)).toEqual([]);
  });

  it("counts against its operation's own limit, unless it is refused before", async () => {
    const counted = async (verb: VerbId, method: string, path: string) => {
      played(verb);
      const { send, noted, actor } = await service({ suspendedFor: null });
      const { status } = await send(method, `/api/v1${path}`, example(verb));
      return [status, noted.map((name) => name.replace(actor.accountId, "own"))];
    };
    expect(await counted("inspectSource", "POST", "/sources/inspect")).toEqual([
      200,
      ["sourceInspected:own"],
    ]);
    expect(await counted("chat", "POST", "/chat")).toEqual([200, ["chatFree:own", "chatFreeDaily:own"]]);
    expect(await counted("getSite", "GET", `/sites/${id}`)).toEqual([200, []]);
    // A key may not export the account.
    expect(await counted("exportAccount", "GET", "/account/export")).toEqual([403, []]);
    played("inspectSource");
    const { send } = await service({}, { sourceInspected: 9 });
    const limited = await send("POST", "/api/v1/sources/inspect", example("inspectSource"));
    expect([limited.status, limited.headers.get("Retry-After")]).toEqual([429, "9"]);
  });

  it("counts against that limit whoever makes it: a page and the assistant's tools as well", async () => {
    const accountId = newId("account");
    const account = { accountId, role: "user", plan: "free", suspendedFor: null } as const;
    const session: Actor = { type: "session", sessionId: newId("session"), ...account };
    const callers: [VerbId, Actor][] = [
      ["createKey", session],
      ["testNotificationChannel", session],
      ["inspectSource", assistantActor(accountId)],
      ["probeSite", assistantActor(accountId)],
    ];
    for (const [verb, actor] of callers) {
      const inputs = played(verb);
      const { limit = "chat" }: Operation = operations[verb];
      const makes = (limits: object) =>
        call(
          contextOf({ ...bindings, ...limits }, actor, () => undefined),
          verb,
          {},
        );
      const { noted, limits } = notedLimits();
      await makes(limits);
      expect([noted, inputs.length]).toEqual([[`${limit}:${accountId}`], 1]);
      const refused = makes(notedLimits({ [limit]: 9 }).limits);
      await expect(refused).rejects.toMatchObject({ code: "rate_limited" });
      expect(inputs).toHaveLength(1);
    }
  });

  it("under an Idempotency-Key is done once where it comes twice, and each time if it only reads or is nobody's", async () => {
    const query = `/databases/${newId("database")}/query`;
    const cases: [VerbId, string, string, number, object?][] = [
      ["createSite", "POST", "/sites", 1],
      ["chat", "POST", "/chat", 1],
      ["deleteSite", "DELETE", `/sites/${id}`, 1],
      ["queryDatabase", "POST", query, 1, { write: true }],
      ["queryDatabase", "POST", query, 2, { write: false }],
      ["inspectSource", "POST", "/sources/inspect", 2],
      ["getSite", "GET", `/sites/${id}`, 2],
      ["startDevice", "POST", "/auth/device", 2],
    ];
    for (const [verb, method, path, times, more] of cases) {
      const { send } = await service();
      const inputs = played(verb, { id: 1 });
      const body = example(verb);
      const headers = { "Idempotency-Key": "twice", ...(verb === "startDevice" && nobody) };
      const sent = () =>
        send(method, `/api/v1${path}`, body === undefined ? undefined : { ...body, ...more }, headers);
      const [first, second] = [await sent(), await sent()];
      expect([verb, first.status, inputs.length]).toEqual([verb, second.status, times]);
      expect(second.headers.get("Idempotency-Replayed")).toBe(times === 1 ? "true" : null);
    }
  });

  it("that makes a secret shows it once", async () => {
    const { send } = await service({ role: "operator" });
    played("createHost", { id: "host_1", token: "hst_secret", installCommand: "hst_secret" });
    const sent = async () =>
      (await send("POST", "/api/v1/hosts", example("createHost"), { "Idempotency-Key": "once" })).body;
    expect(await sent()).toEqual({ id: "host_1", token: "hst_secret", installCommand: "hst_secret" });
    expect(await sent()).toEqual({ id: "host_1" });
  });
});

it("the service says that it is well, and what its API is", async () => {
  const ctx = contextOf(bindings, { type: "link" }, () => undefined);
  expect(await verbs.getHealth(ctx, {})).toEqual({ status: "ok", version });
  expect(await verbs.getOpenApi(ctx, {})).toMatchObject({
    openapi: expect.stringMatching(/^3\./),
    paths: expect.any(Object),
  });
});
