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

it("lines that are no variables are named", () => {
  expect(parseEnvFile('1A=b\nnothing\nGOOD=1\nOPEN="never closed\nmore').problems).toEqual([
    { line: 1, text: expect.stringContaining("NAME=value") },
    { line: 2, text: expect.stringContaining("NAME=value") },
    { line: 4, text: expect.stringContaining("OPEN") },
  ]);
  expect(read("__proto__=x\nconstructor=y")).toMatchObject({ constructor: "y" });
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
