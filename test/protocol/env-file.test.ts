import fc from "fast-check";
import { expect, it } from "vitest";
import { envLine, parseEnvFile } from "../../protocol/env-file.ts";

const read = (text: string) =>
  Object.fromEntries(parseEnvFile(text).variables.map(({ key, value }) => [key, value]));

it("a file of variables is read as dotenv libraries read it", () => {
  const text = [
    "# a comment",
    "PLAIN=value # said after it",
    "export EXPORTED = spaced out ",
    "EMPTY=",
    'DOUBLE="a\\nb \\"c\\" # kept"',
    "SINGLE='a\\nb'",
    "URL=postgres://u:p@host/db?a=b#c",
    'KEY="-----BEGIN-----',
    "abc",
    '-----END-----"',
    "PLAIN=the last counts",
  ].join("\r\n");
  expect(read(text)).toEqual({
    PLAIN: "the last counts",
    EXPORTED: "spaced out",
    EMPTY: "",
    DOUBLE: 'a\nb "c" # kept',
    SINGLE: "a\\nb",
    URL: "postgres://u:p@host/db?a=b#c",
    KEY: "-----BEGIN-----\nabc\n-----END-----",
  });
});

it.each([
  ["\n\n  \n# one\n  # two\n", {}],
  ["A=1\rB=2", { A: "1", B: "2" }],
  ["  A = 1  \t # one # two", { A: "1" }],
  ["export   A=1", { A: "1" }],
  ["A=it's", { A: "it's" }],
  ["A=1#2", { A: "1#2" }],
  ["A=\"\"\nB=''", { A: "", B: "" }],
  ["A='\\'\nB=`\"`", { A: "\\", B: '"' }],
])("%j has no problem", (text, variables) => {
  expect(parseEnvFile(text).problems).toEqual([]);
  expect(read(text)).toEqual(variables);
});

it("lines that are no variables are named", () => {
  expect(parseEnvFile('1A=b\ntwo words=1\nGOOD=1\nOPEN="never closed\nmore').problems).toEqual([
    { line: 1, text: expect.stringContaining("NAME=value") },
    { line: 2, text: expect.stringContaining("NAME=value") },
    { line: 4, text: expect.stringContaining("OPEN") },
  ]);
  expect(read("__proto__=x\nconstructor=y")).toMatchObject({ constructor: "y" });
});

it("quotes what is more than letters, digits and some signs, and nothing else", () => {
  expect(envLine("A", "postgres://u:p@host/db-1,2+3=%20")).toBe("A=postgres://u:p@host/db-1,2+3=%20");
  expect(envLine("A", "")).toBe("A=");
  expect(envLine("A", "it's")).toBe('A="it\'s"');
  // Not every reader knows \" within double quotes: node --env-file ends there.
  expect(envLine("A", '{"a":"\\n"}')).toBe(`A='{"a":"\\n"}'`);
  expect(envLine("A", `it's "b"`)).toBe('A="it\'s \\"b\\""');
});

it("reads again what it writes, whatever the value", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }).filter((text) => !text.includes("\u0000")),
      (value) => {
        expect(parseEnvFile(envLine("KEY", value))).toEqual({
          variables: [{ key: "KEY", value }],
          problems: [],
        });
      },
    ),
  );
});

it.each([
  ["a quote that is never closed", 'A="', "\n", ""],
  ["spaces within a value", "A=x", " ", "y"],
  ["comments before a line's other end", "A=x", " #", "\u2028"],
  ["many values in quotes", "", "A='\n'\n", ""],
])("%s in a megabyte takes no time to speak of, as strangers send it", (_, begin, middle, end) => {
  const started = performance.now();
  parseEnvFile(begin + middle.repeat(1_000_000 / middle.length) + end);
  expect(performance.now() - started).toBeLessThan(4_000);
});

it("what other platforms export has the values that it had there", () => {
  // heroku config --shell, and godotenv, which writes dokku config:export --format envfile
  expect(read('A="pa\\$\\$w0rd\\! \\`x\\`"\nB="it\'s\\\\n\\n\\"b\\""')).toEqual({
    A: "pa$$w0rd! `x`",
    B: 'it\'s\\n\n"b"',
  });
  // dokku config:export; Python's shlex.quote
  expect(read(`export A='it'\\''s'\nB='it'"'"'s'\nC=''\\'''\nexport D='x';`)).toEqual({
    A: "it's",
    B: "it's",
    C: "'",
    D: "x",
  });
  // heroku config --json, railway variables --json, dokku config:export --format json
  expect(parseEnvFile(' {\n "A": "x\\ny", "B": 1, "C": true, "D": "" }\n')).toEqual({
    variables: [
      { key: "A", value: "x\ny" },
      { key: "B", value: "1" },
      { key: "C", value: "true" },
      { key: "D", value: "" },
    ],
    problems: [],
  });
});

it("no part of a value is left out without a word", () => {
  expect(parseEnvFile("A=\"x\" y\nB='it\\'s'\nC='x'y\nD=\"x\"# said\nE='x' # said").problems).toEqual([
    { line: 1, text: expect.stringContaining("A") },
    { line: 2, text: expect.stringContaining("B") },
    { line: 3, text: expect.stringContaining("C") },
  ]);
  expect(parseEnvFile('{"A": "b"').problems).toEqual([{ line: 1, text: expect.stringContaining("JSON") }]);
  expect(parseEnvFile('{"A": {"b": 1}, "C": null, "D E": "f", "G": "h"}')).toEqual({
    variables: [{ key: "G", value: "h" }],
    problems: [
      { line: 1, text: expect.stringContaining("A") },
      { line: 1, text: expect.stringContaining("C") },
      { line: 1, text: expect.stringContaining("NAME") },
    ],
  });
});
