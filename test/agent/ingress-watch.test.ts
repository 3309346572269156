import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { processesWith } from "../../agent/ingress/processes.ts";
import { watchIngress } from "../../agent/ingress/watch.ts";

let watching = new AbortController();
afterEach(() => watching.abort());

/** Parts that answer as they are told, and what was replaced of them. */
function watch(asks: Record<string, () => Promise<void>>) {
  watching = new AbortController();
  const replaced: string[] = [];
  void watchIngress(
    Object.entries(asks).map(([name, ask]) => ({ name, asks: ask, replace: async () => undefined })),
    { signal: watching.signal, onReplaced: (name) => replaced.push(name), lookMs: 5, startMs: 0 },
  );
  return replaced;
}
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

it("a process is found by the last of its arguments, all of them", () => {
  const folder = mkdtempSync(join(tmpdir(), "processes-"));
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
  rmSync(folder, { recursive: true });
});
