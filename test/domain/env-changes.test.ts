import { expect, it } from "vitest";
import { envChanges } from "../../worker/domain/env-changes.ts";

const entry = (key: string, value: string, more = {}) => ({
  key,
  value,
  scope: "both" as const,
  secret: false,
  ...more,
});
const secret = (key: string, value: string) => entry(key, value, { secret: true });
/** Sealed as `<random>:<value>`. */
const open = ({ value }: { value: string }) => value.split(":")[1] ?? "";

it("a variable is added, removed, or changed in its value, its scope or its secrecy", () => {
  const before = [entry("A", "1"), entry("B", "1"), entry("C", "1"), entry("D", "x:1"), entry("E", "1")];
  const after = [
    entry("B", "2"),
    entry("C", "1", { scope: "build" }),
    secret("D", "y:1"),
    entry("E", "1"),
    entry("F", "1"),
  ];
  expect(envChanges(before, after, open)).toEqual([
    { key: "B", change: "changed" },
    { key: "C", change: "changed" },
    { key: "D", change: "changed" },
    { key: "F", change: "added" },
    { key: "A", change: "removed" },
  ]);
});

it("a secret that is only sealed again has not changed", () => {
  expect(envChanges([secret("A", "x:1")], [secret("A", "y:1")], open)).toEqual([]);
  expect(envChanges([secret("A", "x:1")], [secret("A", "y:2")], open)).toEqual([
    { key: "A", change: "changed" },
  ]);
});
