import { describe, expect, it } from "vitest";
import { uncoloured } from "../../web/lib/ansi.ts";
import { isAtLeast, structured } from "../../web/lib/structured.ts";

const read = (text: string) => {
  const { level, readable } = structured(text);
  return [level, readable === null ? null : uncoloured(readable)];
};

describe("a line of a log", () => {
  it.each([
    ['{"level":"error","msg":"no cache","code":7}', "error", "error no cache code=7"],
    ['{"level":30,"time":1,"msg":"listening","port":3000}', "info", "info  listening port=3000"],
    ['{"severity":"WARNING","message":"slow","ms":[1,2]}', "warn", "warn  slow ms=[1,2]"],
    ['{"msg":"<img src=x>"}', null, "<img src=x>"],
  ])("of JSON is its level, its message and the rest: %s", (text, level, readable) => {
    expect(read(text)).toEqual([level, readable]);
  });

  it.each(['{"a":1}', "{not json}", "{}", "[1]"])(
    "that says nothing of the kind stays as it is: %s",
    (text) => {
      expect(read(text)).toEqual([null, null]);
    },
  );

  it.each([
    ["ERROR: it broke", "error"],
    ["2026-01-01 12:00:00 [warn] slow", "warn"],
    ["warning: cache miss", "warn"],
    ["terror in the title", null],
    ["no errors were found by the check of the whole", null],
  ])("says its level in a word at its beginning: %s", (text, level) => {
    expect(read(text)).toEqual([level, null]);
  });

  it("is found by its level and by graver ones", () => {
    expect([isAtLeast("error", "warn"), isAtLeast("info", "warn"), isAtLeast(null, "debug")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
