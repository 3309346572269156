import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("SECURITY.md names tests and pages that are there", () => {
  const named = readFileSync("SECURITY.md", "utf8").match(/(?:test|worker|docs)\/[\w./-]+\.(?:ts|md)/g) ?? [];
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
