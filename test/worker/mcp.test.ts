import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import type { Activity } from "../../protocol/api/activity.ts";
import type { Page } from "../../protocol/api/common.ts";
import { readsOnly, toolGroups, tools, type ToolName } from "../../protocol/api/tools.ts";
import { holdToSchema } from "../support/tool-output.ts";
import { contextOf } from "../../worker/compose.ts";
import { accountOf } from "../../worker/ctx.ts";
import { assistantActor, ownerOf } from "./assistant.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  readyAgent,
  runningSite,
  siteUrl,
  uniqueName,
  operatorLogin,
} from "./service.ts";
import { answering, argumentsAbout, recordOf, wholeAccount } from "./whole-account.ts";

type Elicited = { message: string; url?: string };
type Answer = { action: "accept" | "decline" | "cancel"; content?: Record<string, boolean> };

/** The official client over Streamable HTTP; `ask` answers for the person where the client can ask. */
async function connect(
  key: string,
  {
    query = "",
    ask,
    url,
  }: { query?: string; ask?: (asked: Elicited) => Answer | Promise<Answer>; url?: true | undefined } = {},
) {
  const client = new Client(
    { name: "test", version: "1" },
    {
      capabilities: ask ? { elicitation: url ? { url: {} } : { form: {} } } : {},
      versionNegotiation: { mode: "auto" },
    },
  );
  if (ask)
    client.setRequestHandler("elicitation/create", async ({ params }) => ask(params as unknown as Elicited));
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${siteUrl}/mcp${query}`), {
      requestInit: { headers: { Authorization: `Bearer ${key}` } },
      fetch: async (input, init) => {
        const { pathname, search } = new URL(String(input instanceof Request ? input.url : input));
        return call(pathname + search, init);
      },
    }),
  );
  return client;
}

const textOf = (result: unknown): string => {
  const { content } = result as { content: { type: string; text?: string }[] };
  return content.map(({ text = "" }) => text).join("\n");
};
const dataOf = (result: unknown): unknown =>
  JSON.parse((JSON.parse(textOf(result)) as { untrusted_data: string }).untrusted_data);
const wantedOf = async (siteId: string) =>
  (
    await bindings.DB.prepare("SELECT wanted FROM sites WHERE id = ?")
      .bind(siteId)
      .first<{ wanted: string }>()
  )?.wanted;
const running = async (key: string) => {
  const name = uniqueName("mcp");
  return { name, ...(await runningSite(key, await readyAgent(), { name })) };
};
const pageIn = (text: string): string => new URL(/https?:\S+\/confirm\/\S+/.exec(text)?.[0] ?? "").pathname;
/** The operator's own session opens pages; their keys are of the same account. */
const open = async (path: string, decision?: string) =>
  call(path, {
    redirect: "manual",
    headers: { Cookie: await operatorCookie(), Origin: siteUrl, Accept: "text/html" },
    ...(decision && { method: "POST", body: new URLSearchParams({ decision }) }),
  });

describe("a client of MCP", () => {
  it("speaks the current revision, and lists every tool with what it may do in one answer, as many clients ask once", async () => {
    const client = await connect(await account());
    expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
    const { tools: all } = await client.request({ method: "tools/list", params: {} });
    expect(all.map(({ name }) => name).toSorted()).toEqual(Object.keys(tools).toSorted());
    for (const { name, annotations, description, inputSchema } of all) {
      const spec: { destructive?: true; summary: string } = tools[name as ToolName];
      expect([name, annotations]).toMatchObject([
        name,
        { destructiveHint: spec.destructive === true, readOnlyHint: readsOnly(name as ToolName) },
      ]);
      expect(description).toBe(spec.summary);
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    }
  });

  it("may ask for some groups alone, and then has no others", async () => {
    const key = await account();
    const client = await connect(key, { query: "?groups=logs,billing" });
    const { tools: some } = await client.listTools();
    expect(new Set(some.map(({ name }) => tools[name as ToolName].group))).toEqual(
      new Set(["logs", "billing"]),
    );
    expect(await client.callTool({ name: "list_sites", arguments: {} })).toMatchObject({ isError: true });
    const wrong = await call("/mcp?groups=kitchen", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}` },
    });
    expect(wrong.status).toBe(400);
    expect(await wrong.text()).toContain(Object.keys(toolGroups)[0]);
  });

  it("acts for the account of its key alone, and what it changes is recorded under the key", async () => {
    const [key, other] = [await account(), await account()];
    const client = await connect(key);
    const { siteId } = await createSite(key, { name: "own" });
    await createSite(other, { name: "strange" });
    expect(dataOf(await client.callTool({ name: "list_sites", arguments: {} }))).toMatchObject({
      sites: [{ id: siteId }],
    });
    const health = { site: "own", path: "/up" };
    expect(await client.callTool({ name: "set_health_check", arguments: health })).not.toHaveProperty(
      "isError",
    );
    const strange = { ...health, site: "strange" };
    expect(await client.callTool({ name: "set_health_check", arguments: strange })).toMatchObject({
      isError: true,
    });
    const { body } = await api<Page<Activity>>(key, "GET", `/activity?resource=${siteId}&actor=assistant`);
    expect(body.data).toMatchObject([{ operation: "patchSite", actorId: expect.stringMatching(/^key_/) }]);
  });

  it("is told results as data by the schema that it was told before, and checks them", async () => {
    const key = await account();
    const { name } = await running(key);
    const client = await connect(key);
    // From now on the client refuses what is not as announced.
    const { tools: all } = await client.listTools();
    for (const { name: tool, outputSchema } of all)
      expect([tool, outputSchema?.type]).toEqual([tool, "object"]);
    for (const [tool, input] of [
      ["list_sites", {}],
      ["get_site", { site: name }],
      ["list_deployments", { site: name }],
      ["list_packs", {}],
      ["get_account", {}],
      ["list_env_vars", { site: name }],
      // Of several answers, and of those that may ask.
      ["get_disk_usage", {}],
      ["set_maintenance_mode", { site: name, on: false }],
    ] as const) {
      const answer = await client.callTool({ name: tool, arguments: input });
      const { untrusted_data: data } = answer.structuredContent as { untrusted_data: unknown };
      holdToSchema(tool, data);
      const told = (JSON.parse(textOf(answer)) as { untrusted_data: string }).untrusted_data;
      // The text is cut where it is long.
      expect([tool, JSON.stringify(data).startsWith(told)]).toEqual([tool, true]);
    }
    const waits = await client.callTool({ name: "stop_site", arguments: { site: name } });
    expect(waits.structuredContent).toEqual({ said: textOf(waits) });
    const secret = await client.callTool({ name: "get_deploy_webhook", arguments: { site: name } });
    expect(secret.structuredContent).toEqual({ said: textOf(secret) });
  });

  it("gets no secret in the structure that the text masks", async () => {
    const key = await account();
    await createSite(key, { name: "canary", startCommand: `serve postgres://u:canary-password@db/x ${key}` });
    const answer = await (await connect(key)).callTool({ name: "get_site", arguments: { site: "canary" } });
    expect(answer.structuredContent).toMatchObject({ untrusted_data: { name: "canary" } });
    for (const secret of ["canary-password", key]) expect(JSON.stringify(answer)).not.toContain(secret);
  });

  it("has each call on record, also one that only reads, is refused, or waits for the person", async () => {
    const key = await account();
    const { name } = await running(key);
    const client = await connect(key);
    for (const [tool, input] of [
      ["list_sites", {}],
      ["get_site", { site: "none" }],
      ["get_site", { place: "none" }],
      ["rm_rf", {}],
      ["stop_site", { site: name }],
    ] as const)
      await client.callTool({ name: tool, arguments: input });
    const forged = { requestState: "yes" };
    await client.callTool({ name: "stop_site", arguments: { site: name }, ...forged });
    const { body } = await api<Page<Activity>>(key, "GET", "/activity?only=calls");
    expect(body.data.map(({ operation, outcome }) => [operation, outcome]).toReversed()).toEqual([
      ["list_sites", "done"],
      ["get_site", "not_found"],
      ["get_site", "invalid_request"],
      ["unknown_tool", "not_found"],
      ["stop_site", "asked"],
      ["stop_site", "conflict"],
    ]);
    for (const { actor, actorId } of body.data)
      expect([actor, actorId]).toEqual(["assistant", expect.stringMatching(/^key_/)]);
  });

  it("is told why arguments are refused", async () => {
    const client = await connect(await account());
    for (const [name, input, why] of [
      ["get_site", {}, "site"],
      ["get_site", { site: "none" }, "no site none"],
      ["rm_rf", {}, "no tool rm_rf"],
    ] as const) {
      const answer = await client.callTool({ name, arguments: input });
      expect([name, answer.isError]).toEqual([name, true]);
      expect(textOf(answer)).toContain(why);
    }
  });

  it("of 2025 is served as well, without sessions", async () => {
    const key = await account();
    const post = (body: object) =>
      call("/mcp", {
        method: "POST",
        headers: {
          Authorization: `Bearer ${key}`,
          "Content-Type": "application/json",
          Accept: "application/json, text/event-stream",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
      });
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: { elicitation: {} },
      clientInfo: { name: "old", version: "1" },
    };
    const greeted = await post({ method: "initialize", params });
    expect(await greeted.text()).toContain('"protocolVersion":"2025-11-25"');
    const { siteId, name } = await running(key);
    const asked = await post({
      method: "tools/call",
      params: { name: "stop_site", arguments: { site: name } },
    });
    expect(await asked.text()).toMatch(/Nothing has been done yet.*\/confirm\/cfm_/);
    expect(await wantedOf(siteId)).toBe("RUNNING");
  });
});

describe("what is destructive through MCP", () => {
  it("asks the person where the client can, and is done once, as it was shown", async () => {
    const key = await account();
    const { name, siteId } = await running(key);
    const asked: Elicited[] = [];
    const client = await connect(key, {
      ask: (one) => {
        asked.push(one);
        return { action: "accept", content: { confirm: true } };
      },
    });
    const answer = await client.callTool({ name: "stop_site", arguments: { site: name } });
    expect(answer.isError).toBeUndefined();
    expect(asked[0]?.message).toContain(`Stop the site ${name}: visitors receive 503`);
    expect(await wantedOf(siteId)).toBe("STOPPED");
  });

  it.each<[string, Answer]>([
    ["declines", { action: "decline" }],
    ["closes the form", { action: "cancel" }],
    ["sends the form without the word", { action: "accept", content: { confirm: false } }],
  ])("is not done where the person %s", async (_, person) => {
    const key = await account();
    const { name, siteId } = await running(key);
    const client = await connect(key, { ask: () => person });
    const answer = await client.callTool({ name: "stop_site", arguments: { site: name } });
    expect(textOf(answer)).toContain("declined");
    expect(await wantedOf(siteId)).toBe("RUNNING");
  });

  it("is not done by a confirmation of another call, of another key, replayed or made up", async () => {
    const key = await account();
    const [first, second] = [await running(key), await running(key)];
    const states: string[] = [];
    const agreed = { confirm: { action: "accept", content: { confirm: true } } };
    const manual = async (as: string, site: string, extra: object = {}) => {
      const client = await connect(as, { ask: () => ({ action: "cancel" }) });
      return (await client.callTool(
        { name: "stop_site", arguments: { site }, ...extra },
        {
          allowInputRequired: true,
        },
      )) as { resultType?: string; requestState?: string; isError?: boolean };
    };
    const asked = await manual(key, first.name);
    expect(asked.resultType).toBe("input_required");
    states.push(asked.requestState ?? "");
    const [state = ""] = states;
    const retry = (as: string, site: string, requestState: string) =>
      manual(as, site, { inputResponses: agreed, requestState });
    expect(await retry(key, second.name, state)).toMatchObject({ isError: true });
    expect(await retry(await account(), first.name, state)).toMatchObject({ isError: true });
    expect(await retry(key, first.name, `cfm_${"A".repeat(32)}`)).toMatchObject({ isError: true });
    expect(await retry(key, first.name, "yes")).toMatchObject({ isError: true });
    expect([await wantedOf(first.siteId), await wantedOf(second.siteId)]).toEqual(["RUNNING", "RUNNING"]);
    expect(await retry(key, first.name, state)).not.toHaveProperty("isError");
    expect(await wantedOf(first.siteId)).toBe("STOPPED");
    const again = await retry(key, first.name, state);
    expect([again.isError, textOf(again)]).toEqual([true, expect.stringContaining("carried out")]);
  });

  it.each(["stop_site", "get_deploy_webhook"] as const)(
    "with %s says that it may be done where the service ended after the person's word, and not that it waits for one",
    async (name) => {
      const key = await account();
      const { name: site } = await running(key);
      const url = name === "get_deploy_webhook" || undefined;
      const client = await connect(key, { url, ask: () => ({ action: "cancel" }) });
      const call = (more: object = {}) =>
        client.callTool({ name, arguments: { site }, ...more }, { allowInputRequired: true });
      const { requestState = "" } = (await call()) as { requestState?: string };
      const ctx = contextOf(bindings, assistantActor(await ownerOf(key)), () => undefined);
      expect(await ctx.pendingCalls.take(requestState, accountOf(ctx), "taken")).toMatchObject({ step: {} });
      const inputResponses = { confirm: { action: "accept", content: { confirm: true } } };
      expect(textOf(await call({ requestState, inputResponses }))).toContain("not known to be carried out");
    },
  );

  it("is not done by any tool without the person's word, or with the word for another tool", async () => {
    const whole = await wholeAccount();
    answering(whole.host);
    const about = [whole.accountId, ...Object.values(whole.ids)];
    const before = await recordOf(about);
    const args = argumentsAbout(whole.ids);
    const client = await connect(whole.key, { ask: () => ({ action: "cancel" }) });
    const agreed = { inputResponses: { confirm: { action: "accept", content: { confirm: true } } } };
    const manual = async (name: ToolName, extra: object = {}) =>
      (await client.callTool({ name, arguments: args[name], ...extra }, { allowInputRequired: true })) as {
        requestState?: string;
        isError?: boolean;
      };
    let requestState: string | undefined;
    for (const name of Object.keys(tools) as ToolName[]) {
      if (!("destructive" in tools[name])) continue;
      const first = await manual(name);
      if ("secret" in tools[name]) {
        expect([name, textOf(first)]).toEqual([name, expect.stringContaining("Nothing has been done yet.")]);
        continue;
      }
      expect([name, first.requestState]).toEqual([name, expect.stringMatching(/^cfm_/)]);
      if (requestState !== undefined)
        expect([name, await manual(name, { ...agreed, requestState })]).toMatchObject([
          name,
          { isError: true },
        ]);
      ({ requestState } = first);
    }
    expect(await recordOf(about)).toEqual(before);
  });

  it("answers a client that cannot ask with a page, where the signed-in person confirms once", async () => {
    const key = await operator();
    const { name, siteId } = await running(key);
    const client = await connect(key);
    const asked = textOf(await client.callTool({ name: "stop_site", arguments: { site: name } }));
    const path = pageIn(asked);
    expect(asked).toContain("Nothing has been done yet.");
    const stranger = await call(path, { redirect: "manual" });
    const signIn = `/sign-in?next=${encodeURIComponent(path)}`;
    expect([stranger.status, stranger.headers.get("Location")]).toEqual([303, signIn]);
    const signedIn = await call("/sign-in", {
      method: "POST",
      redirect: "manual",
      headers: { Origin: siteUrl },
      body: new URLSearchParams({ ...operatorLogin, next: path }),
    });
    expect(signedIn.headers.get("Location")).toBe(path);
    expect(await (await open(path)).text()).toContain(`Stop the site ${name}: visitors receive 503`);
    const forged = await call(path, {
      method: "POST",
      headers: { Cookie: await operatorCookie(), Origin: "https://evil.example" },
      body: new URLSearchParams({ decision: "confirm" }),
    });
    expect(forged.status).toBe(403);
    expect(await wantedOf(siteId)).toBe("RUNNING");
    expect(await (await open(path, "confirm")).text()).toContain("It is done, or in progress");
    expect(await wantedOf(siteId)).toBe("STOPPED");
    expect((await open(path, "confirm")).status).toBe(404);
    expect((await open(path)).status).toBe(404);
  });

  it("asked for before the account was suspended waits on its page, and is done only after its release", async () => {
    const key = await operator();
    const { name, siteId } = await running(key);
    const asked = await (await connect(key)).callTool({ name: "stop_site", arguments: { site: name } });
    const ownerId = await ownerOf(key);
    const suspend = (reason: string | null) =>
      bindings.DB.prepare("UPDATE accounts SET suspended_for = ? WHERE id = ?").bind(reason, ownerId).run();
    await suspend("Mining.");
    const refused = await open(pageIn(textOf(asked)), "confirm");
    await suspend(null);
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("Mining.")]);
    expect(await wantedOf(siteId)).toBe("RUNNING");
    expect((await open(pageIn(textOf(asked)), "confirm")).status).toBe(200);
    expect(await wantedOf(siteId)).toBe("STOPPED");
  });

  it("asked for by another account is on nobody else's page", async () => {
    const key = await account();
    const { name, siteId } = await running(key);
    const asked = textOf(
      await (await connect(key)).callTool({ name: "stop_site", arguments: { site: name } }),
    );
    for (const decision of [undefined, "confirm", "decline"])
      expect((await open(pageIn(asked), decision)).status).toBe(404);
    expect(await wantedOf(siteId)).toBe("RUNNING");
  });
});

describe("a secret through MCP", () => {
  it("is on the page of the signed-in person, and in no answer to the client", async () => {
    const key = await operator();
    const name = uniqueName("secret");
    const { siteId } = await createSite(key, { name });
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    const said: string[] = [];
    const plain = await connect(key);
    said.push(textOf(await plain.callTool({ name: "get_deploy_webhook", arguments: { site: name } })));
    expect(said[0]).toContain(`Show the deploy webhook address of the site ${name}`);
    expect(await (await open(pageIn(said[0] ?? ""), "confirm")).text()).toContain(url);
    // A client that can open pages is told when it has been seen.
    const opening = await connect(key, {
      url: true,
      ask: async ({ url: page }) => {
        await open(new URL(page ?? "").pathname, "confirm");
        return { action: "accept" };
      },
    });
    said.push(textOf(await opening.callTool({ name: "get_deploy_webhook", arguments: { site: name } })));
    expect(said[1]).toContain("carried out");
    expect(said.join("")).not.toContain(url.slice(-20));
  });
});

describe("the door of MCP", () => {
  it("is closed without a key, and says where to learn of one", async () => {
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" };
    const refused = await call("/mcp", init);
    expect(refused.status).toBe(401);
    const [, address = ""] =
      /resource_metadata="([^"]+)"/.exec(refused.headers.get("WWW-Authenticate") ?? "") ?? [];
    const described = await call(new URL(address).pathname);
    expect(await described.json()).toMatchObject({
      resource: `${siteUrl}/mcp`,
      bearer_methods_supported: ["header"],
    });
    const cookie = { ...init.headers, Cookie: await operatorCookie(), Origin: siteUrl };
    expect((await call("/mcp", { ...init, headers: cookie })).status).toBe(401);
  });

  it("is closed to pages of other sites, whatever they hold", async () => {
    const key = await account();
    const headers = { Authorization: `Bearer ${key}`, Origin: "http://evil.example" };
    expect((await call("/mcp", { method: "POST", headers, body: "{}" })).status).toBe(403);
  });

  it("takes no call that is not UTF-8", async () => {
    const answer = await call("/mcp", {
      method: "POST",
      headers: { Authorization: `Bearer ${await account()}`, "Content-Type": "application/json" },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { issues: [{ path: "", message: "The body is not valid UTF-8" }] },
    ]);
  });

  it("takes one call a request: a batch would be many calls that count as one", async () => {
    const key = await account();
    const listing = { jsonrpc: "2.0", method: "tools/call", params: { name: "list_sites", arguments: {} } };
    for (const batch of [
      [
        { ...listing, id: 1 },
        { ...listing, id: 2 },
      ],
      [{ ...listing, id: 1 }],
    ]) {
      const answer = await call("/mcp", {
        method: "POST",
        headers: {
          Authorization: `Bearer ${key}`,
          "Content-Type": "application/json",
          Accept: "application/json, text/event-stream",
        },
        body: `\n ${JSON.stringify(batch)}`,
      });
      expect([answer.status, await answer.json()]).toMatchObject([
        400,
        { issues: [{ path: "", message: expect.stringContaining("batch") }] },
      ]);
    }
    const { body } = await api<Page<Activity>>(key, "GET", "/activity");
    expect(body.data.filter(({ operation }) => operation === "list_sites")).toEqual([]);
  });

  it("counts calls by the key's own limit, and says what is left of it", async () => {
    const key = await account();
    const accountId = await ownerOf(key);
    expect(accountId).toMatch(/^acc_/);
    const post = () =>
      call("/mcp", { method: "POST", headers: { Authorization: `Bearer ${key}` }, body: "{}" });
    const first = await post();
    expect(first.headers.get("RateLimit-Policy")).toBe('"key";q=60;w=60');
    expect(first.headers.get("RateLimit")).toMatch(/^"key";r=59;t=\d+$/);
    const statuses = [first.status];
    for (let count = 1; count < 61; count++) statuses.push((await post()).status);
    expect(statuses.slice(0, 60)).not.toContain(429);
    expect(statuses[60]).toBe(429);
  });
});
