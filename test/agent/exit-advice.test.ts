import { describe, expect, it } from "vitest";
import { exitReason } from "../../agent/sites/readiness.ts";
import type { Engine } from "../../agent/docker/engine.ts";

const reasonOf = (code: number, ...lines: string[]) => {
  const ended = {
    inspectContainer: () => Promise.resolve(null),
    lastLines: (_: string, count: number) => Promise.resolve(lines.slice(-count)),
  } as unknown as Engine;
  return exitReason(ended, "c1", code, performance.now());
};
const frames = Array.from({ length: 14 }, (_, at) => `    at Module.f${at} (node:internal/modules:${at}:5)`);

describe("an app that exited", () => {
  it("is told of by its error, without the stack, however long that is", async () => {
    const lines = [
      "node:fs:1364",
      "  const result = binding.mkdir(",
      "                         ^",
      "",
      "Error: EACCES: permission denied, mkdir '/etc/todos'",
      ...frames,
      "    at new Promise (<anonymous>)",
      "    at async file:///app/a.js:1:1 {",
      "  errno: -13,",
      "  path: '/etc/todos'",
      "}",
      "",
      "Node.js v24.21.0",
    ];
    expect(await reasonOf(1, ...lines)).toMatch(
      /: it may not write to \/etc\/todos, only below \/app and \/tmp: give the site a volume, .*\. Its last lines: node:fs:1364 \|   const result = binding\.mkdir\( \| Error: EACCES: permission denied, mkdir '\/etc\/todos' \|   errno: -13, \|   path: '\/etc\/todos' \| \}$/,
    );
  });

  it.each([
    ["Error: EROFS: read-only file system, open '/data/a.db'", "/data/a.db"],
    ["PermissionError: [Errno 13] Permission denied: '/var/lib/x'", "/var/lib/x"],
    ["OSError: [Errno 30] Read-only file system: '/srv/x'", "/srv/x"],
    ["a.rb:1:in 'mkdir': Permission denied @ dir_s_mkdir - /data (Errno::EACCES)", "/data"],
    ["panic: mkdir /data: permission denied", "/data"],
    ["mkdir: cannot create directory ‘/data’: Permission denied", "/data"],
  ])("because it may not write where it wants is told where it may: %s", async (line, path) =>
    expect(await reasonOf(1, line)).toContain(`: it may not write to ${path}, only below /app and /tmp: `),
  );

  it.each([
    [
      " ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment (bad pnpm and/or Node.js version)",
      /correct packageManager/,
    ],
    [
      "Error: Cannot find module 'next-transpile-modules'",
      /lacks the package next-transpile-modules: list it/,
    ],
    [
      "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@next/mdx' imported from /app/a.js",
      /package @next\/mdx:/,
    ],
    ["Error: Cannot find module '/app/dist/index.js'", /: correct it or its start command\./],
    ["Error: listen EACCES: permission denied 0.0.0.0:80", /: correct it or its start command\./],
  ])("is told what to do: %s", async (line, advice) => expect(await reasonOf(1, line)).toMatch(advice));

  it("well is told what runs programs that end", async () =>
    expect(await reasonOf(0, "done")).toMatch(
      /: let it go on running, in the foreground, or let a schedule or a command run it if it is meant to end\. Its last lines: done$/,
    ));
});
