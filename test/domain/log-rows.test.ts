import { expect, it } from "vitest";
import { rowsOf } from "../../web/lib/rows.ts";

it.each([
  ["", 20, 1],
  ["a".repeat(20), 20, 1],
  ["a".repeat(21), 20, 2],
  ["Error: no\n    at one\n    at two", Infinity, 3],
  [`${"a".repeat(21)}\n\nb`, 20, 4],
  ["\tat org.example.Main", 20, 2],
  ["12345678\t12345678\t", 20, 2],
  ["日".repeat(10), 20, 1],
  ["日".repeat(11), 20, 2],
  [`a${"日".repeat(10)}`, 20, 2],
  ["🚀".repeat(11), 20, 2],
])("a line of a log is given the rows that it takes: %j in %s columns", (text, columns, rows) => {
  expect(rowsOf(text, columns)).toBe(rows);
});
