import { afterEach, describe, expect, it, vi } from "vitest";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import type { DatabaseSpec, Job, JobKind } from "../../protocol/agent/jobs.ts";
import type { ChatReply } from "../../protocol/api/chat.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import { readsOnly, tools, type ToolGroup, type ToolInput, type ToolName } from "../../protocol/api/tools.ts";
import { ScriptedModel, type Said } from "../support/scripted-model.ts";
import {
  account,
  api,
  bindings,
  finish,
  operator,
  pay,
  readyAgent,
  uniqueName,
  type Agent,
} from "./service.ts";

type Server = (request: Request) => Response | Promise<Response>;
/** Servers outside besides the model, by host name. */
const servers = new Map<string, Server>();
export const serving = (host: string, server: Server): unknown => servers.set(host, server);

afterEach(() => {
  vi.restoreAllMocks();
  servers.clear();
  for (const host of hosts.splice(0)) host.close();
});

/** The model says this from now on, one turn per request; everything else outside stays as it is. */
export function scripted(...turns: Said[]): ScriptedModel {
  const model = new ScriptedModel(turns);
  vi.restoreAllMocks();
  const outside = globalThis.fetch.bind(globalThis);
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const { host } = new URL(request.url);
    return host === "model.test" ? model.answer(request) : (servers.get(host) ?? outside)(request);
  });
  return model;
}

export const open = (group: ToolGroup): Said => ({ calls: [{ name: "open_tools", args: { group } }] });
export const use = (name: ToolName, args: object): Said => ({ calls: [{ name, args }] });

export const ownerOf = async (key: string) =>
  (await bindings.DB.prepare("SELECT account_id AS id FROM api_keys WHERE start = ?")
    .bind(key.slice(0, 10))
    .first<{ id: `acc_${string}` }>())!.id;

/** The key of a new account with so many credits. */
export async function funded(amount = 20): Promise<string> {
  const key = await account();
  await api(await operator(), "POST", "/credits/grants", { accountId: await ownerOf(key), amount });
  return key;
}

/** Of the test that runs. */
const hosts: Agent[] = [];

/** An account with credits, and the only host, which is ready. */
export async function scene() {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  const [key, host] = [await funded(), await readyAgent()];
  hosts.push(host);
  return { key, host };
}

export const say = (key: string, message: string, more: object = {}) =>
  api<ChatReply>(key, "POST", "/chat", { message, ...more });

type Used = {
  /** What the model was told; a text where it was cut. */
  result: unknown;
  /** The last reply. */
  reply: ChatReply;
  /** What the person was asked to confirm. */
  asked: string | null;
};

/** Tools that were carried out through `POST /chat` in the test that runs. */
const carriedOut = new Set<string>();

/** How much the account's assistant has changed. */
const recordedFor = async (key: string) =>
  (await bindings.DB.prepare(
    "SELECT count(*) AS count FROM activity WHERE actor = 'assistant' AND account_id = ?",
  )
    .bind(await ownerOf(key))
    .first<{ count: number }>())!.count;

/**
 * Has the model call a tool in a message to `POST /chat`, and confirms it as the person if that is asked. A destructive
 * tool that does not ask, or another one that does, fails the test.
 */
export async function useTool<Name extends ToolName>(
  key: string,
  name: Name,
  input: ToolInput<Name>,
  /** Where it depends on the arguments. */
  { asks }: { asks?: boolean } = {},
): Promise<Used> {
  const spec: { group: ToolGroup; destructive?: true } = tools[name];
  const model = scripted(open(spec.group), use(name, input), { text: "There it is." });
  const before = await recordedFor(key);
  const first = await say(key, `Use ${name}`);
  expect([first.status, first.body]).toMatchObject([200, {}]);
  const asked = first.body.pendingAction?.summary ?? null;
  expect([name, asked !== null]).toEqual([name, asks ?? spec.destructive === true]);
  // Nothing happens before the person's word.
  if (asked !== null) expect([name, await recordedFor(key)]).toEqual([name, before]);
  const { conversationId } = first.body;
  const reply = asked === null ? first.body : (await say(key, "yes", { conversationId })).body;
  for (const { tool, ok } of reply.toolCalls) if (ok) carriedOut.add(tool);
  // What claims to read leaves no trace.
  if (readsOnly(name)) expect([name, await recordedFor(key)]).toEqual([name, before]);
  return { result: asked === null ? model.lastResult : model.confirmedResult, reply, asked };
}

type ToolOf<Group extends ToolGroup> = {
  [Name in ToolName]: (typeof tools)[Name]["group"] extends Group ? Name : never;
}[ToolName];
export type Effect = [guarantee: string, test: () => Promise<void>];

/**
 * The tests of a group's tools: each must have its effect through `POST /chat` (`useTool`). A tool without a test does
 * not compile, and fails.
 */
export function effectsOf<Group extends ToolGroup>(
  group: Group,
  effects: Record<ToolOf<Group>, Effect>,
): void {
  describe(`the tools of ${group}`, () => {
    it("have a test each", () => {
      const names = (Object.keys(tools) as ToolName[]).filter((name) => tools[name].group === group);
      expect(Object.keys(effects).toSorted()).toEqual(names.toSorted());
    });
    it.each(Object.entries<Effect>(effects).map(([name, [guarantee, test]]) => ({ name, guarantee, test })))(
      "$name: $guarantee",
      async ({ name, test }) => {
        carriedOut.clear();
        await test();
        expect([...carriedOut]).toContain(name);
      },
    );
  });
}

/** Answers the next question that the host is asked, and returns it. */
export async function answerNext(host: Agent, answer: Answer): Promise<Question> {
  const { requestId, question } = await host.next("ask");
  host.send({ type: "answer", requestId, answer, last: true });
  return question;
}

/** The next job of the host, which must be of this kind. */
export async function jobOf<Kind extends JobKind>(host: Agent, kind: Kind) {
  const { job, attempt } = await host.next("job");
  expect(job.kind).toBe(kind);
  return { job: job as Job<Kind>, attempt };
}

/** A database that runs on this host. */
export async function runningDatabase(key: string, host: Agent, overrides: object = {}) {
  const input = { name: uniqueName("data"), type: "postgresql", ...overrides };
  const { body } = await api<DatabaseCreated>(key, "POST", "/databases", input);
  await pay(body.invoiceToken);
  const { job, attempt } = await jobOf(host, "database.provision");
  await finish(host, job, attempt, { version: "17.2" });
  const spec: DatabaseSpec = job.args.database;
  return { ...body, name: input.name, spec };
}
