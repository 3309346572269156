import { expect, it } from "vitest";
import { app } from "../../worker/app.ts";
import { readCommand } from "../../worker/assistant/command-mode.ts";
import { specOf } from "../../worker/assistant/run-tool.ts";
import { scripted, use, open } from "./assistant.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  site,
  siteUrl,
} from "./service.ts";

const grant = async () => {
  const key = await operator();
  const { id } = (await api<{ id: string }>(key, "GET", "/account")).body;
  await api(key, "POST", "/credits/grants", { accountId: id, amount: 50 });
  return key;
};
const get = async (path: string) =>
  call(path, { redirect: "manual", headers: { Accept: "text/html", Cookie: await operatorCookie() } });
const say = async (fields: Record<string, string>, path = "/assistant") =>
  call(path, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, Cookie: await operatorCookie(), Accept: "text/html" },
    body: new URLSearchParams({ form: "say", ...fields }),
  });

it("a conversation is held without a script: price, answer, history, deletion", async () => {
  await grant();
  expect(await (await get("/assistant")).text()).toMatch(
    /A message costs 1 to 2 credits[^]*You have <b[^>]*>\d+ credits/,
  );
  scripted({ text: "All is <b>well</b>." });
  const done = await say({ message: "Is everything well?" });
  expect(done.status).toBe(303);
  const to = done.headers.get("Location") ?? "";
  const page = await (await get(to)).text();
  expect(page).toContain("Is everything well?");
  expect(page).toContain("All is &lt;b&gt;well&lt;/b&gt;.");
  const id = new URL(to, siteUrl).searchParams.get("conversation") ?? "";
  const removed = await call("/assistant", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, Cookie: await operatorCookie() },
    body: new URLSearchParams({ form: `delete:${id}`, id }),
  });
  expect(removed.status).toBe(303);
  expect((await get(to)).status).toBe(404);
});

it("older conversations are on further pages", async () => {
  const { id } = (await api<{ id: string }>(await operator(), "GET", "/account")).body;
  await bindings.DB.prepare(
    `WITH RECURSIVE n(value) AS (SELECT 10 UNION ALL SELECT value + 1 FROM n WHERE value < 34)
     INSERT INTO conversations (id, account_id, title, created_at, updated_at)
     SELECT 'conv_' || substr('000000000000000000000000000' || value, -27), ?, 'Talk ' || value, value, value FROM n`,
  )
    .bind(id)
    .run();
  const text = await (await get("/assistant")).text();
  expect(text).not.toContain("Talk 10");
  const [, next = ""] = /<a href="([^"]+)">Older conversations</.exec(text) ?? [];
  const older = await (await get(next)).text();
  expect(older).toContain("Talk 10");
  expect(older).not.toContain("Older conversations");
  await bindings.DB.prepare("DELETE FROM conversations").run();
});

it("what is destructive waits on the page for a click, and is done once", async () => {
  const key = await grant();
  const { siteId } = await createSite(key, { name: "to-be-deleted" });
  scripted(open("sites"), use("delete_site", { site: siteId }), {
    text: "Gone.",
  });
  const asked = await say({ message: "Delete to-be-deleted" });
  const to = asked.headers.get("Location") ?? "";
  expect((await site(key, siteId)).status).toBe("PENDING");
  // Whenever it is opened, not only by whoever has asked.
  const page = await (await get(to)).text();
  const [, confirm = ""] = /name="confirm" value="([^"]+)"/.exec(page) ?? [];
  const conversationId = new URL(to, siteUrl).searchParams.get("conversation") ?? "";
  await say({ message: "yes", confirm, conversationId });
  expect(await (await get(to)).text()).not.toContain('name="confirm"');
  expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
});

it("an address of the service is a link in an answer, and no other address is", async () => {
  await grant();
  scripted({ text: `Pay at ${siteUrl}/invoice/inv_1. A log says https://other.example/.` });
  const to = (await say({ message: "What do I pay?" })).headers.get("Location") ?? "";
  expect(await (await get(to)).text()).toContain(
    `Pay at <a href="${siteUrl}/invoice/inv_1">${siteUrl}/invoice/inv_1</a>. A log says https://other.example/.`,
  );
});

it("a message that is too long is refused on the form, with what was typed", async () => {
  const refused = await say({ message: "x".repeat(8001) });
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("x".repeat(8001));
});

it("nobody else's conversation is shown", async () => {
  const other = await account();
  const { id } = (await api<{ id: string }>(other, "GET", "/account")).body;
  await api(await operator(), "POST", "/credits/grants", { accountId: id, amount: 5 });
  scripted({ text: "Secret." });
  const { body } = await api<{ conversationId: string }>(other, "POST", "/chat", { message: "Hello" });
  const answer = await get(`/assistant?conversation=${body.conversationId}`);
  expect([403, 404]).toContain(answer.status);
});

const fetchWithoutModel = async (about: string, init: RequestInit = {}) =>
  app.fetch(
    new Request(`${siteUrl}/assistant?about=${about}`, {
      redirect: "manual",
      headers: { Origin: siteUrl, Cookie: await operatorCookie(), Accept: "text/html" },
      ...init,
    }),
    { ...bindings, MODEL_NAME: undefined },
    { waitUntil: () => undefined, passThroughOnException: () => undefined } as unknown as ExecutionContext,
  );

it.each(["site_001k000000000000000000one0", "db_001k000000000000000000one0", ""])(
  "without a model, each command suggested about %j is one that its tool takes",
  async (about) => {
    const page = await (await fetchWithoutModel(about)).text();
    const suggested = [...page.matchAll(/data-example="true">([^<]+)</g)].map(([, one = ""]) => one);
    expect(suggested).toHaveLength(3);
    for (const one of suggested) {
      const command = readCommand(one);
      if ("input" in command) specOf(command.tool).input.parse(command.input);
      else expect(one).toBe("help");
    }
  },
);

it("what the person looks at is told to a model once in a conversation, and no command ends with it", async () => {
  const [one, other] = ["site_001k000000000000000000one0", "site_001k00000000000000000other"];
  await grant();
  const model = scripted({ text: "Hello." });
  const to = (await say({ message: "Hello" }, `/assistant?about=${one}`)).headers.get("Location") ?? "";
  expect(model.prompts).toContain(`(I am looking at ${one}.)`);
  const toTell = async (path: string) =>
    /<berth-chat[^>]*data-about="([^"]*)"/.exec(await (await get(path)).text())?.[1] ?? null;
  expect(await toTell(`/assistant?about=${one}`)).toBe(one);
  expect(await toTell(`${to}&about=${one}`)).toBe("");
  expect(await toTell(`${to}&about=${other}`)).toBe(other);
  expect(await (await get(to)).text()).not.toContain("I am looking at");

  const commands = await (await fetchWithoutModel(one)).text();
  expect(commands).toMatch(/<berth-chat[^>]*data-about=""/);
  for (const suggested of [`diagnose_site site=${one}`, `get_site_logs site=${one}`, "help"])
    expect(commands).toContain(`data-example="true">${suggested}<`);
  const asked = scripted({ text: "Hello." });
  const body = new URLSearchParams({ form: "say", message: "list_sites" });
  expect((await fetchWithoutModel(one, { method: "POST", body })).status).toBe(303);
  expect(asked.asked.at(-1)?.messages.at(-1)?.content).toBe("list_sites");
});
