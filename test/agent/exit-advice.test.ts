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

const nativePart = /: a package lacks its native part, .* onlyBuiltDependencies /;

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
    ["Error: Cannot find module '/app/node_modules/bcrypt/lib/binding/napi-v3/bcrypt_lib.node'", nativePart],
    ["Error: Cannot find module '../build/Release/canvas.node'", nativePart],
    ["Error: Could not locate the bindings file. Tried:", nativePart],
    ["Error: No native build was found for platform=linux arch=x64 runtime=node abi=127", nativePart],
    ["ModuleNotFoundError: No module named 'psycopg2'", /: there is no module psycopg2: name the package/],
    [
      "ModuleNotFoundError: No module named 'pkg_resources'",
      /do not include pkg_resources: name an older one/,
    ],
    [
      "boot.rb:3:in 'require': cannot load such file -- bootsnap/setup (LoadError)",
      /no bootsnap\/setup to load/,
    ],
    ["KeyError: 'DATABASE_URL'", /: set the site's variable DATABASE_URL\./],
    [`config.rb:3:in 'fetch': key not found: "STRIPE_KEY" (KeyError)`, /variable STRIPE_KEY\./],
    ["error: Environment variable not found: DATABASE_URL.", /variable DATABASE_URL\./],
    [
      "error Error: Failed to replace env in config: ${NPM_TOKEN}",
      /: set the site's variable NPM_TOKEN with the scope both, because the package manager that starts it reads it\./,
    ],
    [
      " WARN  Issue while reading .npmrc. Failed to replace env in config: ${NPM_TOKEN}",
      /: correct it or its/,
    ],
    ["** (RuntimeError) environment variable SECRET_KEY_BASE is missing.", /variable SECRET_KEY_BASE\./],
    [`Could not resolve placeholder 'MAIL_HOST' in value "\${MAIL_HOST}"`, /variable MAIL_HOST\./],
    ["ImproperlyConfigured: Set the REDIS_URL environment variable", /variable REDIS_URL\./],
    ["KeyError: 'name'", /: correct it or its start command\./],
    ["NODE_ENV and other environment variables were loaded", /: correct it or its start command\./],
    [
      "Error: getaddrinfo ENOTFOUND mongo",
      /: no server is called mongo where it runs, .* Docker Compose: set/,
    ],
    ["Error: getaddrinfo ENOTFOUND db.example.com", /: correct it or its start command\./],
    ["dial tcp: lookup db on 127.0.0.11:53: no such host", /called db where/],
    [
      'could not translate host name "postgres" to address: Name or service not known',
      /called postgres where/,
    ],
    [
      "redis.exceptions.ConnectionError: Error -2 connecting to redis:6379. Name or service not known.",
      /redis/,
    ],
    ["Can't reach database server at `db:5432`", /called db where/],
    ["Can't reach database server at `localhost:5432`", /inside its own container/],
    ["Error: Cannot find module '/app/dist/index.js'", /: correct it or its start command\./],
    ["Error: listen EACCES: permission denied 0.0.0.0:80", /: correct it or its start command\./],
  ])("is told what to do: %s", async (line, advice) => expect(await reasonOf(1, line)).toMatch(advice));

  // A start command is run by `exec`, so that it gets the signals: of dash, BusyBox and bash.
  it.each(["sh: 1: exec: %s", "sh: exec: line 0: %s", "sh: line 1: exec: %s"])(
    "because its program cannot be run is told why, whatever shell says so: %s",
    async (said) => {
      const reason = (rest: string) => reasonOf(127, said.replace("%s", rest));
      expect(await reason("gunicorn: not found")).toContain(
        ": the image has no program gunicorn: install it",
      );
      expect(await reason("bin/web: not found")).toContain(": there is no bin/web, or not the program ");
      expect(await reason("bin/web: Permission denied")).toContain(": bin/web is not executable: run chmod ");
    },
  );

  it.each([
    [
      "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
      "libGL.so.1",
      "libgl1",
    ],
    [
      "node: error while loading shared libraries: libatk-1.0.so.0: cannot open",
      "libatk-1.0.so.0",
      "libatk1.0-0",
    ],
    ["chrome: error while loading shared libraries: libnss3.so: cannot open", "libnss3.so", "libnss3"],
    [
      "LoadError: Could not open library 'libX11.so.6': libX11.so.6: cannot open shared object file",
      "libX11.so.6",
      "libx11-6",
    ],
    [
      "Error: libvips-cpp.so.42: cannot open shared object file: No such file",
      "libvips-cpp.so.42",
      "libvips-cpp42",
    ],
  ])(
    "because a library is not there is told in which package it probably is: %s",
    async (line, library, name) =>
      expect(await reasonOf(1, line)).toContain(
        `: the image that runs lacks the library ${library}: name its Debian package, probably ${name}, in an Aptfile, or install it in the Dockerfile.`,
      ),
  );

  it("because a library is not there that has no version is told of the library only", async () =>
    expect(await reasonOf(1, "OSError: cannot load library 'libgobject-2.0-0': cannot open")).toContain(
      "lacks the library libgobject-2.0-0: name its Debian package in an Aptfile",
    ));

  it("well is told what runs programs that end", async () =>
    expect(await reasonOf(0, "done")).toMatch(
      /: let it keep running, in the foreground, or let a schedule or a command run it if it is meant to end\. Its last lines: done$/,
    ));
});
