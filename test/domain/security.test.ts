import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

it("SECURITY.md names tests and pages that are there", () => {
  const named =
    readFileSync(join(root, "SECURITY.md"), "utf8").match(/(?:test|worker|docs)\/[\w./-]+\.(?:ts|md)/g) ?? [];
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
