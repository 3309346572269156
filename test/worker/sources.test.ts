import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import { operations } from "../../protocol/api/operations.ts";
import { SourceInspection } from "../../protocol/api/sources.ts";
import type { Page } from "../../protocol/api/common.ts";
import { runTool } from "../../worker/assistant/run-tool.ts";
import { contextOf } from "../../worker/compose.ts";
import { limits } from "../../worker/middleware/limit.ts";
import { foundOffline } from "./hosts-service.ts";
import { account, api, bindings, readyAgent, runningSite, type Agent } from "./service.ts";

const found = SourceInspection.parse(operations.inspectSource.examples.answer);
const source = { githubUrl: "github.com/owner/repository" };

let key: string;
let host: Agent;
beforeAll(async () => {
  key = await account();
  host = await readyAgent();
});

/** The next question, and the way to answer it. */
async function asked(): Promise<{ question: Question; answer: (answer: Answer) => void }> {
  const { requestId, question } = await host.next("ask");
  return { question, answer: (answer) => host.send({ type: "answer", requestId, answer, last: true }) };
}
const inspect = (body: object, as = key) => api(as, "POST", "/sources/inspect", body);

describe("a repository before anything is paid", () => {
  it("is read by a host that takes sites, with the account that asks and the token that it gave", async () => {
    const reading = inspect({ ...source, branch: "next", gitToken: "secret-token", rootDir: "apps/web" });
    const { question, answer } = await asked();
    expect(question).toEqual({
      kind: "source",
      accountId: expect.stringMatching(/^acc_/) as string,
      source: { address: source.githubUrl, branch: "next", token: "secret-token" },
      rootDir: "apps/web",
      timeoutMs: expect.any(Number) as number,
    });
    answer({ kind: "source", found });
    expect(await reading).toMatchObject({ status: 200, body: found });
  });

  it("leaves no trace in what the account did, and no token anywhere", async () => {
    const { body } = await api<Page<object>>(key, "GET", "/activity");
    expect(JSON.stringify(body)).not.toMatch(/inspect|secret-token/);
  });

  it("is read by the assistant's tool, with the same answer and the same refusals", async () => {
    const reading = inspect(source);
    const first = await asked();
    if (first.question.kind !== "source") throw new Error(first.question.kind);
    const { accountId } = first.question;
    first.answer({ kind: "source", found });
    await reading;
    const conversation = { conversationId: "conv_test", credential: "key_test" } as const;
    const actor = { type: "assistant", accountId, role: "user", plan: "free", ...conversation } as const;
    const ctx = contextOf(bindings, actor, () => undefined);
    const running = runTool(ctx, "detect_framework", { ...source, rootDir: "web" });
    const { question, answer } = await asked();
    expect(question).toMatchObject({
      accountId,
      source: { address: source.githubUrl, token: null },
      rootDir: "web",
    });
    answer({ kind: "source", found });
    expect(await running).toEqual({ status: "done", result: found, shown: null });
    expect(await runTool(ctx, "detect_framework", { githubUrl: "nothing" })).toMatchObject({
      status: "refused",
      error: expect.stringContaining("githubUrl") as string,
    });
  });

  it("is read, with its token, only by hosts that the account is on already, while one of them is connected", async () => {
    const owner = await account();
    const own = await readyAgent();
    await runningSite(owner, own);
    for (let count = 0; count < 8; count++) {
      const reading = inspect({ ...source, gitToken: "secret-token" }, owner);
      await vi.waitUntil(() => [own, host].some((one) => one.waiting().some(({ type }) => type === "ask")));
      expect(host.waiting().filter(({ type }) => type === "ask")).toEqual([]);
      const { requestId } = await own.next("ask");
      own.send({ type: "answer", requestId, answer: { kind: "source", found }, last: true });
      expect((await reading).status).toBe(200);
    }
    own.close();
    await foundOffline(own.hostId);
    const reading = inspect(source, owner);
    (await asked()).answer({ kind: "source", found });
    expect((await reading).status).toBe(200);
  });

  it("that cannot be read is answered all the same, with the reason", async () => {
    const problem = "The repository does not exist.";
    const reading = inspect(source);
    (await asked()).answer({ kind: "source", found: { ...found, reachable: false, problem } });
    expect(await reading).toMatchObject({ status: 200, body: { reachable: false, problem } });
  });

  it("is a conflict where the host refuses to answer", async () => {
    const reading = inspect(source);
    (await asked()).answer({ kind: "refused", error: "The host could not tell: try again." });
    expect(await reading).toMatchObject({
      status: 409,
      body: { reason: "The host could not tell: try again." },
    });
  });

  it.each([
    { githubUrl: "https://github.com/owner/repository" },
    { githubUrl: "github.com/owner/../../x" },
    { ...source, branch: "--upload-pack=x" },
    { ...source, rootDir: "../x" },
    { ...source, gitToken: "a b" },
    { ...source, other: 1 },
    {},
  ])("is refused where it is none: %j", async (body) => {
    expect((await inspect(body)).status).toBe(400);
  });

  it("is read so many times a minute for one account, and for others still", async () => {
    const other = await account();
    const statuses: number[] = [];
    for (let count = 0; count <= limits.sourceInspected.limit; count++) {
      const reading = inspect(source, other);
      if (count < limits.sourceInspected.limit) (await asked()).answer({ kind: "source", found });
      statuses.push((await reading).status);
    }
    expect(statuses.at(-1)).toBe(429);
    expect(statuses.slice(0, -1).every((status) => status === 200)).toBe(true);
  });
});

it("no host that could read a repository is a conflict that says so", async () => {
  host.close();
  await expect
    .poll(async () => (await inspect(source)).status, { timeout: 40_000, interval: 1000 })
    .toBe(409);
});
