import { expect, it } from "vitest";
import { resultText } from "../../cli/commands/databases/query.ts";

const result = (names: string[], ...rows: unknown[][]) => ({
  columns: names.map((name) => ({ name, type: "text" })),
  rows,
  truncated: false,
  affectedRows: null,
  durationMs: 1,
});

it("a statement's result has each column in its place, also those of one name or named by a number", () => {
  const text = resultText(result(["id", "id", "2", "1"], [1, 2, 3, 4]));
  expect(text.split("\n").slice(0, 2)).toEqual(["ID  ID  2  1", "1   2   3  4"]);
});

it("a value of several lines stays in its row", () => {
  const text = resultText(result(["text", "n"], ["one\ntwo", 1]));
  expect(text.split("\n").slice(0, 2)).toEqual(["TEXT     N", "one↵two  1"]);
});
