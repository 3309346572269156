import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import { isChange } from "../../worker/api/call.ts";
import { verbs, type VerbId } from "../../worker/api/verbs.ts";
import { catalogue } from "../../worker/assistant/catalogue.ts";
import type { Tool } from "../../worker/assistant/tool.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { AppError } from "../../worker/domain/app-error.ts";
import { assistantActor, open, say, scripted, use, withoutChatLimit } from "./assistant.ts";
import { bindings } from "./service.ts";
import { answering, argumentsAbout, recordOf, wholeAccount } from "./whole-account.ts";

withoutChatLimit();

let account: Awaited<ReturnType<typeof wholeAccount>>;
let ctx: Ctx;
let args: Record<ToolName, Record<string, unknown>>;
beforeAll(async () => {
  account = await wholeAccount(true);
  answering(account.host);
  args = argumentsAbout(account.ids);
  const actor = assistantActor(account.accountId, account.ids.key);
  ctx = contextOf(bindings, actor, () => undefined);
});
afterAll(() => account.host.close());

const hostile: unknown[] = [
  "a\0b",
  "/up\r\nX-Other: 1",
  "x".repeat(3000),
  "x".repeat(150),
  " ",
  -1,
  1e12,
  true,
  null,
];

/** The value with each part of it, one at a time, replaced by each hostile one. */
function variantsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return variantsOf(value[0]).map((one) => [one]);
  if (typeof value !== "object" || value === null) return hostile;
  return Object.entries(value).flatMap(([key, part]) =>
    variantsOf(part).map((one) => ({ ...value, [key]: one })),
  );
}

/** With all that may be left out, too. */
function whole(name: ToolName): Record<string, unknown> {
  const { properties = {} } = z.toJSONSchema(tools[name].input, { io: "input", unrepresentable: "any" });
  return { ...Object.fromEntries(Object.keys(properties).map((key) => [key, undefined])), ...args[name] };
}

/** What the API would say to this input of a verb. */
function issuesOf({ path, query, body }: Operation, input: object): unknown[] {
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
  const given = Object.entries(input).filter(([key, value]) => !inPath.has(key) && value !== undefined);
  const isOfQuery = ([key]: [string, unknown]) => Object.hasOwn(query?.shape ?? {}, key);
  const asked = Object.fromEntries(given.filter(isOfQuery).map(([key, value]) => [key, String(value)]));
  const sent = Object.fromEntries(given.filter((one) => !isOfQuery(one)));
  return [query?.safeParse(asked), (body ?? z.strictObject({})).safeParse(sent)].flatMap(
    (found) => found?.error?.issues ?? [],
  );
}

describe("what a tool is told", () => {
  it.each(Object.keys(tools) as ToolName[])(
    "reaches no verb that the API would refuse it: %s",
    async (name) => {
      vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("No network here."));
      const reached: string[] = [];
      const kept = { ...verbs };
      for (const id of Object.keys(verbs) as VerbId[]) {
        const run = kept[id] as unknown as (ctx: Ctx, input: object) => Promise<unknown>;
        const watched = async (acting: Ctx, input: object) => {
          if (issuesOf(operations[id], input).length > 0)
            reached.push(`${id} ${JSON.stringify(input)}`.slice(0, 200));
          if (isChange(operations[id], input)) throw new AppError("conflict");
          return run(acting, input);
        };
        Object.assign(verbs, { [id]: watched });
      }
      const tool = catalogue[name] as Tool<never>;
      try {
        for (const variant of [args[name], ...variantsOf(whole(name))]) {
          const input = tools[name].input.safeParse(variant);
          if (!input.success) continue;
          await tool.consequence?.(ctx, input.data as never).catch(() => undefined);
          await tool.run(ctx, input.data as never).catch(() => undefined);
        }
      } finally {
        Object.assign(verbs, kept);
      }
      expect(reached).toEqual([]);
    },
  );

  it.each<[ToolName, object, string]>([
    ["set_health_check", { path: "up" }, "path: a path that starts with /"],
    ["set_health_check", { path: "/up\r\nX-Other: 1" }, "path: a path that starts with /"],
    ["run_command", { command: "echo a\nrm b" }, "command: one line"],
    ["run_command", { command: "x".repeat(2001) }, "command: must have at most 2000 characters"],
    ["set_cron_job", { command: "echo a\0b" }, "command: must not contain NUL"],
    ["set_env_vars", { entries: [{ key: "A", value: "a\0b" }] }, "entries.0.value: must not contain NUL"],
    ["set_maintenance_mode", { message: "a\0b" }, "message: must not contain NUL"],
    ["browse_files", { path: "/a\0b" }, "path: must not contain NUL"],
    ["run_read_query", { query: "SELECT '\0'" }, "query: must not contain NUL"],
    ["run_write_query", { query: " " }, "query: must not be empty"],
    ["clone_site", { name: "Not a name" }, '"path":"name"'],
    ["get_access_logs", { status: "often" }, '"path":"status"'],
  ])("is refused as the API refuses it, and the model reads which field: %s %j", async (name, wrong, why) => {
    const before = await recordOf([account.accountId, ...Object.values(account.ids)]);
    const model = scripted(open(tools[name].group), use(name, { ...args[name], ...wrong }), { text: "No." });
    const { body } = await say(account.key, `Use ${name}`);
    expect([body.toolCalls, body.pendingAction]).toEqual([[{ tool: name, ok: false }], null]);
    expect((model.lastResult as { error: string }).error).toContain(why);
    expect(await recordOf([account.accountId, ...Object.values(account.ids)])).toEqual(before);
  });
});
