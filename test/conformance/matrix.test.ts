import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createSite,
  newAddress,
  operator,
  pay,
  person,
  removeSites,
  send,
  uniqueName,
  until,
  type Answer,
  type Credential,
  type Person,
  type Site,
} from "./service.ts";

/** Every documented operation against every refusal. The rows come from the service's own document. */
type Operation = {
  operationId: string;
  "x-access": "none" | "key" | "session" | "operator" | "own";
  parameters?: { in: string; name: string; required?: boolean }[];
  requestBody?: { required: boolean; content: Record<string, { example?: unknown; schema?: Schema }> };
  responses: Record<string, unknown>;
};
type Schema = { $ref?: string; properties?: object } & Partial<Record<"anyOf" | "oneOf" | "allOf", Schema[]>>;
type Servers = { servers?: { url: string }[] };
type Document = Servers & {
  paths: Record<string, Servers & Record<string, unknown>>;
  components: { schemas: Record<string, Schema> };
};

const { body: document } = await send<Document>(null, "GET", "/openapi.json");
const everyRow = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => ["get", "post", "patch", "delete"].includes(method))
    .map(([method, described]) => ({ method, operation: described as Operation }))
    .map(({ method, operation }) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      base: (item.servers ?? document.servers)?.[0]?.url ?? "",
      operation,
      access: operation["x-access"],
      hasId: path.includes("{id}"),
      hasBody: operation.requestBody !== undefined,
      hasQuery: operation.parameters?.some((one) => one.in === "query") ?? false,
      example: operation.requestBody?.content["application/json"]?.example,
    })),
);
type Row = (typeof everyRow)[number];
const rows = everyRow.filter(({ access }) => access !== "own");
/** Sign-in, payment and files: each has a credential of its own. */
const entries = everyRow.filter(({ access }) => access === "own");

/** Of a deployment elsewhere, BERTH_OPERATOR_EMAIL and BERTH_OPERATOR_PASSWORD say who; without them its rows are skipped. */
const operatorSession = await operator();
const describeOperator = operatorSession ? describe : describe.skip;

let owner: Person;
let stranger: Person;
/** An id of the owner's, by the path it belongs in. */
let owned: Record<string, string>;
/** What the stranger has, so that a request of theirs gets as far as the ids in it. */
let strangers: Record<string, string>;
let spent: { key: string; at: number };
/** One that works, to forge others of, and one that did. */
let known: { works: string; revoked: string };

beforeAll(async () => {
  [owner, stranger] = await Promise.all([person(), person()]);
  const revoked = await owner.newKey();
  known = { works: (await owner.newKey()).key, revoked: revoked.key };
  expect((await send({ key: revoked.key }, "GET", "/sites")).status).toBe(200);
  await send(owner.session, "DELETE", `/keys/${revoked.id}`);
  const site = await createSite(owner.session);
  await pay(site.invoiceToken);
  const database = await send<{ databaseId: string; invoiceToken: string }>(
    owner.session,
    "POST",
    "/databases",
    {
      body: { name: "matrix", type: "postgresql" },
    },
  );
  await pay(database.body.invoiceToken);
  const path = `/databases/${database.body.databaseId}`;
  await until(
    async () => (await send<{ status: string }>(owner.session, "GET", path)).body.status,
    (status) => status === "RUNNING",
  );
  const backup = await send<{ id: string }>(owner.session, "POST", `${path}/backups`);
  const { body } = await send<Site>(owner.session, "GET", `/sites/${site.siteId}`);
  owned = {
    sites: site.siteId,
    deployments: body.latestDeployment?.id ?? "",
    invoices: site.invoiceId,
    keys: (await owner.newKey()).id,
    schedules: (
      await send<{ id: string }>(owner.session, "POST", `/sites/${site.siteId}/schedules`, {
        body: { name: uniqueName("nightly"), cron: "0 3 * * *", command: "true" },
      })
    ).body.id,
    commands: await commandOfOperator(),
    databases: database.body.databaseId,
    backups: backup.body.id,
    notifications: (
      await send<{ id: string }>(owner.session, "POST", "/notifications/channels", {
        body: { type: "mail", kinds: ["deploy_failed"] },
      })
    ).body.id,
    chat: await conversationOfOwner(),
    account:
      (await send<{ data: { id: string }[] }>(owner.session, "GET", "/account/sessions")).body.data[0]?.id ??
      "",
    accounts: "acc_001m80000000000000000000000",
    hosts: "host_001m80000000000000000000000",
    packs: "pack_001k0000000000000000000001",
    credits: "cpk_001k0000000000000000000001",
    jobs: "job_001m80000000000000000000000",
    payments: "flag_001m80000000000000000000000",
    terms: "site_001m80000000000000000000000",
  };
  const other = await createSite(stranger.session);
  await pay(other.invoiceToken);
  const { body: unpaid } = await send<{ databaseId: string }>(stranger.session, "POST", "/databases", {
    body: { name: "strangers", type: "postgresql" },
  });
  const shown = await send<Site>(stranger.session, "GET", `/sites/${other.siteId}`);
  strangers = {
    sites: other.siteId,
    databases: unpaid.databaseId,
    deployments: shown.body.latestDeployment?.id ?? "",
  };
});
afterAll(async () => {
  await removeSites();
  await send(owner.session, "DELETE", `/databases/${owned["databases"]}`);
  await send(stranger.session, "DELETE", `/databases/${strangers["databases"]}`);
});

/** A conversation needs credits, which an operator grants. */
async function conversationOfOwner(): Promise<string> {
  if (!operatorSession) return "conv_001m80000000000000000000000";
  await send(operatorSession, "POST", "/credits/grants", { body: { email: owner.email, amount: 1 } });
  const said = await send<{ conversationId: string }>(owner.session, "POST", "/chat", {
    body: { message: "help" },
  });
  if (said.status !== 200)
    throw new Error(`POST /chat answered ${said.status}: ${JSON.stringify(said.body)}`);
  // It is in the list once its first answer has been recorded.
  await until(
    async () => (await send(owner.session, "GET", `/chat/conversations/${said.body.conversationId}`)).status,
    (status) => status === 200,
  );
  return said.body.conversationId;
}

/** A command needs a site that is live: the operator's, as `npm start` deploys one. */
async function commandOfOperator(): Promise<string> {
  if (!operatorSession) return "cmd_001m80000000000000000000000";
  const { body } = await send<{ data: Site[] }>(operatorSession, "GET", "/sites?limit=100");
  const live = body.data.find(({ status }) => status === "RUNNING");
  if (!live) throw new Error("The operator has no running site, which a command needs: deploy one first");
  const path = `/sites/${live.id}/commands`;
  const run = await send<{ id: string }>(operatorSession, "POST", path, { body: { command: "true" } });
  if (run.status !== 202) throw new Error(`POST ${path} answered ${run.status}: ${JSON.stringify(run.body)}`);
  return run.body.id;
}

const urlOf = (row: Row, id: string) =>
  row.base +
  row.path
    .replace("{id}", id)
    .replace("{name}", "data")
    .replace("{sessionId}", "1")
    .replace("{keptId}", owned["sites"] ?? "");
/** With what its query must have. */
const requestOf = (row: Row, id: string) => {
  const required = (row.operation.parameters ?? []).filter((one) => one.in === "query" && one.required);
  const query = required.map(({ name }) => `${name}=${owned[references[name] ?? ""] ?? "text"}`).join("&");
  return urlOf(row, id) + (query === "" ? "" : `?${query}`);
};
const ownId = (row: Row) => owned[row.path.split("/")[1] ?? ""] ?? "";
const sentOf = (row: Row) => (row.example === undefined ? {} : { body: row.example });

/** A credential that this operation takes. */
async function credentialOf(row: Row, who: Person): Promise<Credential> {
  if (row.access === "none") return null;
  if (row.access === "operator" && operatorSession) return operatorSession;
  // The assistant has limits of its own, per account.
  if (row.path === "/chat" || row.path === "/chat/stream")
    return { key: (await (await person()).newKey()).key };
  return row.access === "session" ? who.session : { key: await keyOf(who) };
}

/** Keys in use, and by how many tests: each may make sixty requests a minute and a test makes six; an account makes few keys. */
const keysInUse = new Map<Person, { key: string; id: string; uses: number }>();
async function keyOf(who: Person): Promise<string> {
  let one = keysInUse.get(who);
  if (!one || one.uses >= 9) {
    if (one) await send(who.session, "DELETE", `/keys/${one.id}`);
    keysInUse.set(who, (one = { ...(await who.newKey()), uses: 0 }));
  }
  one.uses++;
  return one.key;
}

function expectError(answer: Answer, status: number, error: string) {
  expect([answer.status, answer.body["error"]]).toEqual([status, error]);
  expect(answer.headers.get("X-Request-Id")).toMatch(/^[\w-]{8,}$/);
}

it("the document lists the endpoints of the spec", () => {
  for (const name of [
    "GET /sites",
    "POST /sites",
    "GET /sites/{id}",
    "PATCH /sites/{id}",
    "DELETE /sites/{id}",
    "GET /databases",
    "POST /databases",
    "GET /databases/{id}",
    "PATCH /databases/{id}",
    "DELETE /databases/{id}",
    "GET /credits",
    "GET /credits/packages",
    "POST /credits/purchase",
    "POST /chat",
    "POST /chat/stream",
    "POST /auth/device",
    "GET /auth/device-poll",
    "POST /webhooks/deploy/{id}",
  ])
    expect(rows.map((row) => row.name)).toContain(name);
});

describe.each(rows.filter(({ access }) => access !== "none"))("$name", (row) => {
  it("without a key or session: 401", async () => {
    const answer = await send(null, row.method, urlOf(row, ownId(row)), sentOf(row));
    expectError(answer, 401, "unauthorized");
    expect(answer.headers.get("WWW-Authenticate")).toMatch(/^Bearer/);
  });

  it("with a forged, cut or strange key, or a forged session: 401", async () => {
    const key = known.works;
    const last = key.endsWith("A") ? "B" : "A";
    for (const Authorization of [
      `Bearer ${key.slice(0, -1)}${last}`,
      `Bearer ${key.slice(0, -1)}`,
      `Bearer sk_${"A".repeat(50)}`,
      "Bearer ",
      "Bearer \u00e9",
      `Basic ${key}`,
      `Bearer ${key} ${key}`,
    ])
      expectError(
        await send(null, row.method, urlOf(row, ownId(row)), { ...sentOf(row), headers: { Authorization } }),
        401,
        "unauthorized",
      );
    const cookie = owner.session.cookie.replace(/=\w{8}/, "=AAAAAAAA");
    expectError(await send({ cookie }, row.method, urlOf(row, ownId(row)), sentOf(row)), 401, "unauthorized");
  });

  it("with a revoked key: 401", async () => {
    const key = known.revoked;
    expectError(await send({ key }, row.method, urlOf(row, ownId(row)), sentOf(row)), 401, "unauthorized");
  });

  it("over the key's limit: 429, before the body or the id is looked at", async () => {
    const answer = await send({ key: await spentKey() }, row.method, urlOf(row, "unknown"), {
      ...(row.hasBody && { text: "{" }),
    });
    expectError(answer, 429, "rate_limited");
    expect(answer.headers.get("Retry-After")).toMatch(/^[1-9]\d?$/);
  });
});

/** A key that has made its 60 requests within the last 40 seconds. */
async function spentKey(): Promise<string> {
  if (spent === undefined || Date.now() - spent.at > 40_000) {
    const { key } = await owner.newKey();
    const at = Date.now();
    await Promise.all(Array.from({ length: 60 }, () => send({ key }, "GET", "/sites?limit=1")));
    spent = { key, at };
  }
  return spent.key;
}

const withId = rows.filter(({ access, hasId }) => access !== "none" && hasId);

async function expectUnknown(row: Row) {
  const credential = await credentialOf(row, owner);
  const unknown = ownId(row).slice(0, -4) + "0000";
  for (const id of [unknown, "unknown", "%00", "..%2f..", `${ownId(row)}'--`, "x".repeat(1000)])
    expectError(await send(credential, row.method, requestOf(row, id), sentOf(row)), 404, "Not found");
}

describe.each(withId.filter(({ access }) => access !== "operator"))("$name", (row) => {
  it.skipIf(row.path.startsWith("/commands/") && !operatorSession)(
    "with somebody else's id: 403",
    async () => {
      const credential = await credentialOf(row, stranger);
      expectError(
        await send(credential, row.method, requestOf(row, ownId(row)), sentOf(row)),
        403,
        "forbidden",
      );
    },
  );

  it("with an unknown id: 404 Not found", () => expectUnknown(row));
});

/** Names of fields and parameters that name a resource of an account, and where its id belongs in a path. */
const references: Record<string, string> = {
  siteId: "sites",
  databaseId: "databases",
  deploymentId: "deployments",
  backupId: "backups",
  scheduleId: "schedules",
  invoiceId: "invoices",
  commandId: "commands",
};
const fieldsOf = (schema: Schema | undefined): string[] => [
  ...Object.keys(schema?.properties ?? {}),
  ...(schema?.$ref ? fieldsOf(document.components.schemas[schema.$ref.split("/").at(-1) ?? ""]) : []),
  ...[...(schema?.anyOf ?? []), ...(schema?.oneOf ?? []), ...(schema?.allOf ?? [])].flatMap(fieldsOf),
];
const byReference = rows
  .filter(({ access }) => access === "key" || access === "session")
  .flatMap((row) => [
    ...fieldsOf(row.operation.requestBody?.content["application/json"]?.schema).map((field) => ({
      row,
      field,
      isQuery: false,
    })),
    ...(row.operation.parameters ?? [])
      .filter((one) => one.in === "query")
      .map(({ name }) => ({ row, field: name, isQuery: true })),
  ])
  .filter(({ field }) => references[field] !== undefined)
  .map((one) => ({ ...one, name: one.row.name }));

it("the operations that name other resources in body or query are all there", () => {
  expect(byReference.map(({ name, field }) => `${name} ${field}`)).toEqual(
    expect.arrayContaining([
      "POST /sites/{id}/rollback deploymentId",
      "GET /sites/{id}/commands scheduleId",
      "POST /databases/{id}/links siteId",
      "DELETE /databases/{id}/links siteId",
      "POST /databases/{id}/restore backupId",
      "GET /backups databaseId",
      "GET /deployments/{id}/comparison deploymentId",
    ]),
  );
});

describe.each(byReference)("$name", ({ row, field, isQuery }) => {
  it(`with somebody else's ${field}: refused, or nothing of it`, async () => {
    const foreign = owned[references[field] ?? ""] ?? "";
    expect(foreign).toMatch(/_/);
    const url = urlOf(row, strangers[row.path.split("/")[1] ?? ""] ?? "");
    const answer = isQuery
      ? await send(stranger.session, row.method, `${url}?${field}=${foreign}`, sentOf(row))
      : await send(stranger.session, row.method, url, {
          body: { ...(row.example as object | undefined), [field]: foreign },
        });
    if (isQuery && answer.status === 200) expect(answer.body["data"] ?? answer.body["unlinked"]).toEqual([]);
    else expect([403, 404]).toContain(answer.status);
  });
});

describe.each(rows.filter(({ access }) => access === "session"))("$name", (row) => {
  it("with a key: 403, keys are managed by a signed-in person", async () => {
    const { key } = await owner.newKey();
    expectError(await send({ key }, row.method, urlOf(row, ownId(row)), sentOf(row)), 403, "forbidden");
  });
});

describe.each(rows.filter(({ access }) => access === "operator"))("$name", (row) => {
  it("by somebody who is no operator: 403", async () => {
    const key = await keyOf(owner);
    expectError(await send({ key }, row.method, urlOf(row, ownId(row)), sentOf(row)), 403, "forbidden");
  });
});

describeOperator.each(withId.filter(({ access }) => access === "operator"))("$name", (row) => {
  it("by an operator, with an unknown id: 404 Not found", () => expectUnknown(row));
});

describeOperator.each(
  rows.filter(({ access, method, path }) => access === "operator" && method === "GET" && !path.includes("{")),
)("$name", (row) => {
  it("by an operator: 200", async () => {
    expect((await send(operatorSession, row.method, urlOf(row, ""))).status).toBe(200);
  });
});

describe.each(rows.filter(({ access, method }) => access !== "none" && method !== "GET"))("$name", (row) => {
  it("by a session from another site's page: 403", async () => {
    const { cookie } = owner.session;
    for (const headers of [{ Origin: "https://evil.example" }, { Origin: "null" }])
      expectError(
        await send({ cookie }, row.method, urlOf(row, ownId(row)), { ...sentOf(row), headers }),
        403,
        "forbidden",
      );
  });
});

describe.each(rows.filter(({ hasBody }) => hasBody))("$name", (row) => {
  const sendText = async (text: string, headers: Record<string, string> = {}) =>
    send(await credentialOf(row, owner), row.method, urlOf(row, ownId(row)), {
      text,
      headers,
      address: newAddress(),
    });

  it("with a malformed body: 400 and where it is wrong, before the id is looked at", async () => {
    for (const text of ["{", "[]", "null", '"text"', "7", `{"__proto__":{"a":1},"unknownField":1}`]) {
      const answer = await sendText(text);
      expectError(answer, 400, "invalid_request");
      const issues = answer.body["issues"] as unknown[];
      expect(issues.length).toBeGreaterThan(0);
      for (const issue of issues)
        expect(issue).toEqual({ path: expect.any(String), message: expect.any(String) });
    }
    const unknown = await sendText(JSON.stringify({ ...(row.example as object), unknownField: 1 }));
    expectError(unknown, 400, "invalid_request");
    expectError(
      await send(await credentialOf(row, owner), row.method, urlOf(row, "unknown"), {
        text: "{",
        address: newAddress(),
      }),
      400,
      "invalid_request",
    );
  });

  it("with another media type: 415", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
      expectError(await sendText("{}", { "Content-Type": type }), 415, "unsupported_media_type");
  });

  it("with more than 1 MiB: 413", async () => {
    const text = JSON.stringify({ ...(row.example as object), filler: "x".repeat(1024 * 1024) });
    expectError(await sendText(text), 413, "payload_too_large");
  });
});

describe.each(
  rows.filter(({ access, hasBody, method }) => access !== "none" && !hasBody && method !== "GET"),
)("$name", (row) => {
  it("with a body that is not JSON or has a field, though none is asked for: 400, before anything is done", async () => {
    const credential = await credentialOf(row, owner);
    for (const text of ["{", '{"unknownField":1}'])
      expectError(
        await send(credential, row.method, urlOf(row, "unknown"), { text }),
        400,
        "invalid_request",
      );
  });
});

describe.each(rows.filter(({ hasQuery }) => hasQuery))("$name", (row) => {
  it("with a bad query: 400", async () => {
    for (const search of [
      "?unknown=1",
      "?limit=0",
      "?limit=101x",
      "?limit=-1",
      "?code=",
      "?cursor=elsewhere",
    ])
      expectError(
        await send(await credentialOf(row, owner), row.method, urlOf(row, ownId(row)) + search, {
          address: newAddress(),
        }),
        400,
        "invalid_request",
      );
  });
});

describe("endpoints without credentials", () => {
  const open = rows.filter(({ access }) => access === "none");

  it.each(open)("$name asks for none", async (row) => {
    const answer = await send(null, row.method, urlOf(row, "unknown"), {
      ...sentOf(row),
      address: newAddress(),
    });
    expect([401, 403, 500]).not.toContain(answer.status);
  });

  it.each(entries)("$name refuses, without its own credential, as the API does", async (row) => {
    const answer = await send(null, row.method, urlOf(row, "unknown"), {
      ...(row.hasBody && { body: {} }),
      address: newAddress(),
    });
    expect([200, 400, 401, 404]).toContain(answer.status);
    if (answer.status !== 200) expect(answer.body["error"]).toEqual(expect.any(String));
  });

  it("are limited per client address: 429", async () => {
    const address = newAddress();
    for (let round = 0; round < 30; round++)
      await Promise.all(Array.from({ length: 40 }, () => send(null, "GET", "/packs", { address })));
    for (const row of [...open, ...entries].filter(({ path }) => path !== "/health")) {
      const answer = await send(null, row.method, urlOf(row, "unknown"), { ...sentOf(row), address });
      expect([row.name, answer.status, answer.body["error"]]).toEqual([row.name, 429, "rate_limited"]);
      expect(answer.headers.get("Retry-After")).toMatch(/^[1-9]\d*$/);
    }
    expect((await send(null, "GET", "/packs", { address: newAddress() })).status).toBe(200);
  });
});

it("every operation has its row in each part it belongs in", () => {
  expect(rows.length).toBeGreaterThanOrEqual(30);
  for (const row of rows) {
    expect([row.name, row.access]).toEqual([
      row.name,
      expect.stringMatching(/^(none|key|session|operator)$/),
    ]);
    if (row.hasId && row.access !== "none")
      expect([row.name, ownId(row)]).toEqual([row.name, expect.stringMatching(/_/)]);
    if (row.operation.requestBody?.required)
      expect([row.name, row.example]).toEqual([row.name, expect.any(Object)]);
  }
});
