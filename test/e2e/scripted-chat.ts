import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import type { OwnAccount } from "../../protocol/api/accounts.ts";
import type { ChatReply } from "../../protocol/api/chat.ts";
import { tools, type ToolGroup, type ToolInput, type ToolName } from "../../protocol/api/tools.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { holdToSchema } from "../support/tool-output.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { toolsHeldBy, type ToolFile } from "../support/tools-held-by.ts";
import { api, local, request, stateDirectory, until } from "./service.ts";

let model = new ScriptedModel([]);

/**
 * Gives this file's service a scripted model, and its account credits; the result takes the model away again.
 * @param more variables of the control plane
 */
export async function startModel(more: Record<string, string> = {}): Promise<() => Promise<void>> {
  const server = createServer((asked, answer) => {
    void text(asked)
      .then((body) => model.answer(new Request("http://model", { method: "POST", body })))
      .then(({ status, headers, body }) => {
        answer.writeHead(status, Object.fromEntries(headers));
        Readable.from(body ?? []).pipe(answer);
      });
  });
  const port = await freePort();
  server.listen(port, "127.0.0.1");
  const variables = join(stateDirectory, "variables.json");
  writeFileSync(
    variables,
    JSON.stringify({ MODEL_URL: `http://127.0.0.1:${port}/v1`, MODEL_NAME: "scripted", ...more }),
  );
  await restartControlPlane();
  const { id, plan } = (await api<OwnAccount>("GET", "/account")).body;
  await api("POST", "/credits/grants", { accountId: id, amount: 1000 });
  // Thirty messages a minute.
  const changed = await api("PATCH", `/accounts/${id}`, { plan: "pro" });
  expect([changed.status, changed.body]).toMatchObject([200, { plan: "pro" }]);
  return async () => {
    await api("PATCH", `/accounts/${id}`, { plan });
    rmSync(variables);
    await restartControlPlane();
    server.close();
  };
}

const controlPlane = () =>
  (
    JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Partial<
      Record<string, number>
    >
  )["control-plane"] ?? 0;

/** Resolves when the new one answers and its host is connected to it. */
async function restartControlPlane(): Promise<void> {
  const before = controlPlane();
  process.kill(before, "SIGKILL");
  await until(controlPlane, (now) => now !== 0 && now !== before);
  const answers = () => request(`${local.siteUrl}/health`).then(({ status }) => status === 200);
  await until(
    () => answers().catch(() => false),
    (isThere) => isThere,
  );
}

/** Until no host has work left. */
export const quiet = async () =>
  until(
    async () => (await api<{ data: unknown[] }>("GET", "/jobs")).body.data,
    ({ length }) => length === 0,
  );

/** Until the API's answer holds the text: polling the assistant would use up its messages of a minute. */
export const shows = async (path: string, text: string) =>
  until(
    async () => JSON.stringify((await api("GET", path)).body),
    (told) => told.includes(text),
  );

export const docker = (...args: string[]): string =>
  execFileSync("docker", args, { encoding: "utf8" }).trim();
export const containersOf = (siteId: string): string[] =>
  docker("ps", "--quiet", "--filter", `label=berth.site=${siteId}`).split("\n").filter(Boolean);

/** Tools that had their effect in this file. */
const carriedOut = new Set<ToolName>();

/** States that every tool which this file holds to its effect had it here. */
export function holdsItsTools(file: ToolFile): void {
  it("has carried out each tool whose effect is held here", () => {
    const names = (Object.keys(tools) as ToolName[]).filter((name) => toolsHeldBy[name] === file);
    expect(names.filter((name) => !carriedOut.has(name))).toEqual([]);
  });
}

const say = async (message: string, conversationId?: string): Promise<ChatReply> => {
  const { status, body } = await api<ChatReply>("POST", "/chat", {
    message,
    ...(conversationId !== undefined && { conversationId }),
  });
  expect([status, body]).toMatchObject([200, {}]);
  return body;
};

/**
 * Has the model call a tool in a message to `POST /chat`, and confirms it as the person where it is asked; `unchanged`
 * states that nothing happens before. A call that is refused fails the test.
 */
export async function use<Name extends ToolName>(
  name: Name,
  args: ToolInput<Name>,
  { asks, unchanged }: { asks?: boolean; unchanged?: () => Promise<void> } = {},
): Promise<{ result: unknown; reply: ChatReply }> {
  const spec: { group: ToolGroup; destructive?: true } = tools[name];
  model = new ScriptedModel([
    { calls: [{ name: "open_tools", args: { group: spec.group } }] },
    { calls: [{ name, args }] },
    { text: "There it is." },
  ]);
  const first = await say(`Use ${name}`);
  const asked = first.pendingAction !== null;
  expect(asked, told(name)).toBe(asks ?? spec.destructive === true);
  if (!asked) {
    expect(first.toolCalls, told(name)).toEqual([{ tool: name, ok: true }]);
    return carried(name, { result: model.lastResult, reply: first });
  }
  await unchanged?.();
  const reply = await say("yes", first.conversationId);
  const result = model.confirmedResult;
  expect(reply.toolCalls, `${name}: ${JSON.stringify(result)}`).toEqual([{ tool: name, ok: true }]);
  return carried(name, { result, reply });
}

function carried(name: ToolName, used: { result: unknown; reply: ChatReply }) {
  // A text is what was cut; the tests of the Worker hold those whole.
  if (typeof used.result !== "string") holdToSchema(name, used.result);
  carriedOut.add(name);
  return used;
}

const told = (name: ToolName): string => `${name}: ${JSON.stringify(model.lastResult)}`;
