import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { buildFailure } from "../../agent/image-build/build-failure.ts";
import { checkSource } from "../../agent/image-build/check-source.ts";
import { prepareText, prepareBuild } from "../../agent/image-build/prepare.ts";
import { moduleAddress } from "../../agent/image-build/source-address.ts";
import { startLine } from "../../agent/docker/start-line.ts";
import { trustCa } from "../../agent/image-build/trust-ca.ts";
import { BuildFailed } from "../../agent/docker/buildkit.ts";
import { exitAdvice } from "../../agent/sites/exit-advice.ts";
import { JobError } from "../../agent/job.ts";
import { computedMs, slowness } from "../support/computed.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let root: string;
let folder: string;
/** Whoever opens it waits for ever. */
let pipe: string;
beforeEach(() => {
  root = temporaryFolder();
  folder = join(root, "source");
  pipe = join(root, "pipe");
  mkdirSync(folder);
  execFileSync("mkfifo", [pipe]);
});

function write(name: string, text = ""): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}
const large = (name: string) => {
  write(name);
  truncateSync(join(folder, name), 1024 * 1024 + 1);
};

const input = {
  siteId: "site",
  rootDir: null,
  dockerfilePath: null,
  buildCommand: null,
  startCommand: null,
  env: [],
};
/** As a deployment reads a repository that was fetched. */
async function read(changes: Partial<typeof input> | { rootDir: string } | { dockerfilePath: string } = {}) {
  await checkSource(folder, undefined, { lfs: false, submodules: false });
  await prepareBuild(folder, { ...input, ...changes }, null);
}

describe.each([".gitmodules", ".gitattributes", ".dockerignore", "Dockerfile"])(
  "a repository's %s is read as a file of the repository, or not at all:",
  (name) => {
    beforeEach(() => {
      if (name !== "Dockerfile") write("Dockerfile", "FROM scratch\n");
    });

    it.each([
      ["a link to what never ends", () => symlinkSync(pipe, join(folder, name))],
      ["a link to a device", () => symlinkSync("/dev/zero", join(folder, name))],
      [
        "a link to a file of the host",
        () => {
          writeFileSync(join(root, "secret"), "secret");
          symlinkSync(join(root, "secret"), join(folder, name));
        },
      ],
      ["a link to nothing", () => symlinkSync("nowhere", join(folder, name))],
      ["a folder", () => mkdirSync(join(folder, name))],
      ["more than a megabyte", () => large(name)],
    ])("%s is refused with a reason", async (_, make) => {
      make();
      const error: unknown = await read({ dockerfilePath: "Dockerfile" }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(JobError);
      expect((error as JobError).message).toContain(name);
    });

    it("a link to another file of the repository is followed", async () => {
      write("files/own", name === "Dockerfile" ? "FROM scratch\n" : "");
      symlinkSync("files/own", join(folder, name));
      await read();
    });
  },
);

describe("what is read of a repository holds up the agent for no longer than it takes to read it:", () => {
  it.each([
    [".gitmodules", "\n".repeat(1_000_000)],
    ["requirements.txt", " ".repeat(250_000) + "@".repeat(250_000)],
    [".dockerignore", "(a+)+b"],
  ])("%s", async (name, text) => {
    write(name, text);
    write("a".repeat(60));
    write("main.py");
    const before = computedMs();
    await read();
    expect(computedMs() - before).toBeLessThan(2000 * slowness());
  });

  const long = 900_000;
  const many = (text: string) => text.repeat(long / text.length);
  it.each<[string, () => unknown]>([
    [
      "a Dockerfile of directives, where certificates of the operator's are trusted",
      () => trustCa(many("#a=b\n")),
    ],
    ...["\n", " ", "\\\n", "RUN <<a\n", "RUN a <<a <<b", "# \n", "FROM a AS ", "#a=", "a "].map(
      (filler): [string, () => unknown] => [
        `a Dockerfile of ${JSON.stringify(filler)}`,
        () => trustCa(`RUN a \\\n${many(filler)}`),
      ],
    ),
    [
      "a start command",
      () => [" ", "a=b ", "a;", "a&&", "=", "exec "].map((filler) => startLine(many(filler))),
    ],
    [
      "the address of a submodule",
      () => {
        const ofSlashes = `https://git.example/${many("/")}a`;
        expect(() => moduleAddress("git.example/a/b", ofSlashes, [])).toThrow(
          /is far too long for a repository address/,
        );
      },
    ],
    [
      "what a build that failed, or an app that ended, wrote last",
      () => {
        const signs = [
          ": 1: ELF",
          "exec a/",
          "sh: ",
          "env: '",
          ": line 1: ",
          "1: 0x0 ",
          "at a:1:1:1",
          "npm error ",
        ];
        for (const sign of signs) {
          const lines = Array.from({ length: 15 }, () => sign.repeat(32_768 / sign.length));
          exitAdvice(lines);
          const lastLines = Array.from({ length: 200 }, () => sign.repeat(2000 / sign.length));
          const message = `process "${'process "'.repeat(100)}`.slice(0, 1000);
          buildFailure(new BuildFailed(message, lastLines), 2048);
        }
      },
    ],
  ])("%s", (_, read) => {
    const before = computedMs();
    read();
    expect(computedMs() - before).toBeLessThan(2000 * slowness());
  });
});

describe("what reads a Dockerfile is Docker's own:", () => {
  const digest = `@sha256:${"0".repeat(64)}`;
  const reading = async (text: string, value = "") => {
    write("Dockerfile", `${text}\nFROM scratch\n`);
    const env =
      value === "" ? [] : [{ key: "BUILDKIT_SYNTAX", value, scope: "both", secret: false } as const];
    await Promise.all([
      prepareBuild(folder, { ...input, env }, null),
      prepareText(`${text}\nFROM scratch\n`, { ...input, env }, null),
    ]);
  };

  it.each([
    "# syntax=docker/dockerfile:1",
    "#syntax = docker.io/docker/dockerfile:1.7-labs",
    `# escape=\`\n# syntax=docker/dockerfile:1${digest}\r`,
    "# syntax=docker/dockerfile-upstream:master",
    "# syntax=docker/dockerfile",
    "# syntax=docker/dockerfile:1.2",
    "# syntax=docker/dockerfile:1.10.0-rc1-labs",
    `# syntax=docker/dockerfile:1.7${digest}`,
    "# A comment\n\nFROM scratch\n# syntax=elsewhere",
    "# A comment\n# syntax=elsewhere",
  ])("%j", async (text) => reading(text));

  it.each([
    "# syntax=evil.example/frontend",
    "# syntax=docker/dockerfile:1.0",
    "# syntax=docker/dockerfile:1.0.2",
    "# syntax=docker/dockerfile:1.1.7",
    "# syntax=docker/dockerfile:1.1-experimental",
    "# syntax=docker/dockerfile:experimental",
    "# syntax=docker/dockerfile-upstream:v0.3",
    `# syntax=docker/dockerfile:1.0${digest}`,
    `# syntax=docker/dockerfile${digest}`,
    "#SYNTAX=docker/dockerfile.evil/x",
    `# syntax=evil/dockerfile:1${digest}`,
    "# syntax=berth-site/0123:dep_1",
    "# syntax=evil/x docker/dockerfile:1",
    "\uFEFF# syntax=evil/x",
    "#\u0085syntax=evil/x",
    "# check=skip=all\n# Syntax =\tevil/x \r",
    "#!/bin/evil\u2028\n# syntax=evil/x",
    "// syntax=evil/x",
    "# check=a\u2028b\n# syntax=evil/x",
    '{"syntax":"evil/x"}',
    '#!/bin/evil\n\n{"\\u0073yntax":"evil/x"}',
  ])("%j is refused with a reason", async (text) => {
    await expect(reading(text)).rejects.toThrow(/The Dockerfile (?:asks for the syntax|begins with \{)/);
  });

  it("also where a variable asks for it", async () => {
    await reading("", "docker/dockerfile:1");
    await expect(reading("", "evil/x")).rejects.toThrow("The Dockerfile asks for the syntax evil/x");
  });
});

it("names that mean something elsewhere are names in .dockerignore", async () => {
  write("Dockerfile", "FROM scratch\n");
  write(".dockerignore", "c++\nfoo(1).txt\n");
  for (const name of ["c++/a", "foo(1).txt", "kept"]) write(name);
  await checkSource(folder);
  const { context } = await prepareBuild(folder, input, null);
  expect([...context()].map(({ path }) => path)).toEqual([".dockerignore", "Dockerfile", "kept"]);
});

it("what .dockerignore excepts is built with, and what it names is not, be it the Dockerfile", async () => {
  for (const name of ["Dockerfile", "src/a.ts", "src/kept/b.ts", "node_modules/x/y", "z"])
    write(name, "FROM scratch\n");
  write(".dockerignore", "src\n!src/kept\nnode_modules\nDockerfile\n");
  const { context, dockerfile } = await prepareBuild(folder, input, null);
  const paths = [...context()].map(({ path }) => path);
  expect(paths).toEqual([".dockerignore", "src", "src/kept", "src/kept/b.ts", "z"]);
  expect(dockerfile).toEqual({ name: "Dockerfile", text: "FROM scratch\n" });
});

it("what a Dockerfile's own .dockerignore names is left out in place of what the root's names", async () => {
  for (const name of ["docker/api.Dockerfile", "Dockerfile", "api/x", "secret", "web/x"]) write(name);
  write(".dockerignore", "api\n");
  write("docker/api.Dockerfile.dockerignore", "docker\nsecret\nweb\n");
  const paths = async (dockerfilePath: string | null) =>
    [...(await prepareBuild(folder, { ...input, dockerfilePath }, null)).context()].map(({ path }) => path);
  expect(await paths("docker/api.Dockerfile")).toEqual([".dockerignore", "Dockerfile", "api", "api/x"]);
  expect(await paths("./docker/../docker/api.Dockerfile")).toContain("api/x");
  expect(await paths(null)).toContain("secret");
  expect(await paths(null)).not.toContain("api/x");
  write("Dockerfile.dockerignore", "*\n");
  expect(await paths(null)).toEqual([]);
});

it.each([
  ["larger than 1 MB", () => large("Dockerfile.dockerignore")],
  ["larger than 32 KB", () => write("Dockerfile.dockerignore", "a\n".repeat(20_000))],
  ["[ without its ]", () => write("Dockerfile.dockerignore", "[a")],
  ["does not exist in the repository", () => symlinkSync(pipe, join(folder, "Dockerfile.dockerignore"))],
])("a Dockerfile's own .dockerignore that is no such file is refused by its name: %s", async (why, make) => {
  write("Dockerfile", "FROM scratch\n");
  make();
  await expect(read()).rejects.toThrow(why);
  await expect(read()).rejects.toThrow("Dockerfile.dockerignore");
});

it("what a Procfile wants to run at a release is told, if it can be a command", async () => {
  write("main.py");
  write("Procfile", "release: ./migrate\nweb: ./serve\n");
  const { release } = await prepareBuild(folder, input, null);
  expect(release).toBe("./migrate");
  write("Procfile", `release: ${"x".repeat(2001)}\nweb: ./serve\n`);
  await expect(prepareBuild(folder, input, null)).rejects.toThrow("put it in a script");
});

it("beside a Dockerfile of its own, what is not read is said", async () => {
  for (const name of ["Dockerfile", "Procfile", "render.yaml"]) write(name, "FROM scratch\n");
  const { notes } = await prepareBuild(folder, input, null);
  expect(notes).toEqual([
    expect.stringMatching(/^The Procfile is not read, .* releaseCommand/),
    expect.stringContaining("render.yaml"),
  ]);
});

describe("a folder of the repository", () => {
  const refused = async (rootDir: string) =>
    expect(read({ rootDir })).rejects.toThrow(/does not exist in the repository/);

  it("that is a link out of it is refused, as is one below such a link", async () => {
    mkdirSync(join(root, "outside", "app"), { recursive: true });
    writeFileSync(join(root, "outside", "app", "Dockerfile"), "FROM scratch\n");
    symlinkSync("../outside", join(folder, "out"));
    await refused("out");
    await refused("out/app");
    await expect(read({ dockerfilePath: "out/app/Dockerfile" })).rejects.toThrow(/Dockerfile/);
  });

  it("has a .dockerignore that leads out of the repository refused", async () => {
    write("app/Dockerfile", "FROM scratch\n");
    symlinkSync(pipe, join(folder, "app", ".dockerignore"));
    await expect(read({ rootDir: "app" })).rejects.toThrow(/\.dockerignore/);
    expect(existsSync(pipe)).toBe(true);
  });
});
