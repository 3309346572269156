import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { processesWith } from "../../agent/ingress/processes.ts";
import { partsOf, watchIngress } from "../../agent/ingress/watch.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let watching = new AbortController();
afterEach(() => watching.abort());

/** Parts that answer as they are told, what was replaced of them, and what the operator was told last. */
function watchAndTell(
  asks: Record<string, () => Promise<void>>,
  { startMs = 0, replace = async () => {} } = {},
) {
  watching = new AbortController();
  const replaced: string[] = [];
  let problem: string | null | undefined;
  void watchIngress(
    Object.entries(asks).map(([name, ask]) => ({ name, asks: ask, replace, advice: "look at it." })),
    {
      signal: watching.signal,
      onReplaced: (name) => replaced.push(name),
      onProblem: (found) => void (problem = found),
      lookMs: 5,
      startMs,
    },
  );
  return { replaced, problem: () => problem };
}
const watch = (...of: Parameters<typeof watchAndTell>) => watchAndTell(...of).replaced;
const refuses = () => Promise.reject(new Error("refused"));

it("what is slow, or does not answer once, is left alone", async () => {
  let asked = 0;
  const replaced = watch({
    responder: () => delay(30),
    ingress: () => (asked++ % 2 === 0 ? refuses() : Promise.resolve()),
  });
  await vi.waitUntil(() => asked > 6);
  expect(replaced).toEqual([]);
});

it("what does not answer twice is replaced, and what is asked through it is not judged", async () => {
  const replaced = watch({ responder: refuses, ingress: refuses });
  await vi.waitUntil(() => replaced.length > 2);
  expect(new Set(replaced)).toEqual(new Set(["responder"]));
});

it("what is replaced in vain is replaced less and less often", async () => {
  const replaced = watch({ ingress: refuses }, { startMs: 40 });
  const at: number[] = [];
  for (const count of [1, 2, 3, 4]) {
    await vi.waitUntil(() => replaced.length >= count, { interval: 5, timeout: 20_000 });
    at.push(performance.now());
  }
  expect(Number(at[3]) - Number(at[2])).toBeGreaterThan(140);
});

it.each([
  ["cannot be replaced", () => Promise.reject(new Error("it does not run"))],
  ["does not answer although it was replaced", async () => {}],
])("the operator is told of a part that %s, until it answers", async (_, replace) => {
  let answers = false;
  const { problem } = watchAndTell(
    { responder: () => (answers ? Promise.resolve() : refuses()) },
    { replace },
  );
  const told = "The responder of this host does not answer, so no site can be served: look at it.";
  await vi.waitUntil(() => problem() === told);
  answers = true;
  await vi.waitUntil(() => problem() === null);
});

it("what answers by HTTP on the port of visitors is not taken for the ingress", async () => {
  const another = http.createServer((_, response) => response.end("Another program's page"));
  await once(another.listen(0, "127.0.0.1"), "listening");
  const { port } = another.address() as AddressInfo;
  const renewCaddy = () => Promise.resolve();
  const settings = { address: "127.0.0.1", port, responderPort: 1, statusPort: port, tls: null };
  const [, ingress] = partsOf(settings, { routesFile: "routes.json", renewCaddy });
  await expect(ingress?.asks(AbortSignal.timeout(5000))).rejects.toThrow("ECONNREFUSED");
  another.close();
});

it("a process is found by the last of its arguments, all of them", () => {
  const folder = temporaryFolder();
  const add = (id: string, ...args: string[]) => {
    mkdirSync(join(folder, id));
    writeFileSync(join(folder, id, "cmdline"), args.map((arg) => `${arg}\0`).join(""));
  };
  add("7", "node", "responder.mjs", "/var/lib/berth/routes.json", "5300", "5301");
  add("8", "node", "responder.mjs", "/other/routes.json", "5300", "5301");
  add("9", "sh", "-c", "node responder.mjs /var/lib/berth/routes.json 5300 5301");
  add("10");
  mkdirSync(join(folder, "self"));
  expect(processesWith(["/var/lib/berth/routes.json", "5300", "5301"], folder)).toEqual([7]);
});
