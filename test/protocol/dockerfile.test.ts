import { expect, it } from "vitest";
import { problemOfDockerfile } from "../../protocol/dockerfile.ts";
import { computedMs, slowness } from "../support/computed.ts";

it.each([
  ["", "no FROM"],
  ["# FROM alpine\n\n", "no FROM"],
  ["hello\n", "line 1: there is no instruction HELLO"],
  ["FROM alpine\n\nRUN true\n123 go\n", "line 4: there is no instruction 123"],
  ["FROM alpine\nRUN a && \\\n  # why\n\n  b\nFORM alpine\n", "line 6: there is no instruction FORM"],
  ["# escape=`\nFROM alpine\nRUN a `\n  b\nSTART a\n", "line 5: there is no instruction START"],
  ["ARG A=1\nRUN true\nFROM alpine\n", "line 2: RUN stands before FROM"],
  ["FROM\n", "line 1: FROM names no image"],
  ["FROM scratch\n", "line 1: FROM scratch"],
  [
    'FROM golang:1 AS build\nRUN go build\nFROM --platform=linux/amd64 scratch\nCMD ["/app"]\n',
    "line 3: FROM scratch",
  ],
  ["FROM alpine\nX" + "y".repeat(1000), `there is no instruction X${"Y".repeat(29)}…`],
])("a text that no build takes is refused with its line: %j", (text, why) => {
  expect(problemOfDockerfile(text, true)).toContain(why);
});

it.each([
  "FROM alpine",
  "\uFEFF# syntax=docker/dockerfile:1\n# check=skip=all; error=true\r\n\r\nFROM alpine:3 AS a\r\nRUN true\r\n",
  "arg TAG=1\nfrom alpine:$TAG\nonbuild run true\nMAINTAINER me\n",
  "FROM alpine\nRUN <<EOF\nFORM alpine\nEOF\nRUN echo $((1 << 2))\nnot looked at\n",
  'FROM alpine\nRUN a \\\n  b \\\n\n# c\n  d\nCMD ["a", \\\n"b"]',
  'FROM golang:1 AS build\nRUN go build -o /app\nFROM scratch\nCOPY --from=build /app /app\nENTRYPOINT ["/app"]\n',
  "FROM scratch\nFROM alpine\n",
  "FROM scratch AS files\nADD https://example.com/a /a\n",
  "FROM ${BASE:-scratch}\n",
  "ARG A=\\\\\nFROM alpine\n",
  "FROM alpine\nRUN true \\",
])("a text that a build may take is no problem: %j", (text) => {
  expect(problemOfDockerfile(text, true)).toBeNull();
});

it("a command of its own or the site's is what an image of nothing else runs", () => {
  const text = "FROM alpine AS build\nRUN true\nFROM scratch\nCOPY --from=build /app /app\n";
  expect(problemOfDockerfile(text, false)).toContain("line 3: FROM scratch begins without a command");
  for (const own of ["CMD", "ENTRYPOINT"])
    expect(problemOfDockerfile(`${text}${own} ["/app"]\n`, false)).toBeNull();
});

it("a hostile text takes no long time", () => {
  for (const text of [
    "\\\n".repeat(50_000),
    " ".repeat(100_000),
    "FROM a\n" + "RUN <<A\n".repeat(12_000),
    `FROM ${"-- ".repeat(30_000)}`,
    `#${" ".repeat(99_000)}=`,
  ]) {
    const began = computedMs();
    problemOfDockerfile(text, true);
    expect(computedMs() - began).toBeLessThan(500 * slowness());
  }
});
