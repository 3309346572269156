import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { parseInstructions } from "../../protocol/dockerfile.ts";
import { dockerfile, node, variables, type Files } from "../support/detected.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const start = { scripts: { start: "node ." }, dependencies: { a: "1" } };
const pnpm = { "pnpm-lock.yaml": "lockfileVersion: '9.0'\n" };
const classic = { "yarn.lock": "# yarn lockfile v1\n" };
const berry = { "yarn.lock": "__metadata:\n  version: 6\n" };

describe("the release of a package manager", () => {
  it.each<[string, object, Files, string]>([
    ["that writes the lock file", {}, pnpm, "pnpm@10"],
    ["that engines allows, too", { engines: { pnpm: ">=9" } }, pnpm, "pnpm@10"],
    ["that engines asks for", { engines: { pnpm: "9" } }, pnpm, "pnpm@9"],
    ["that engines asks for exactly", { engines: { pnpm: "9.12.0" } }, pnpm, "pnpm@9.12.0"],
    [
      "of several alternatives the best for the lock file",
      { engines: { pnpm: "^8.15 || ^9.1" } },
      { "pnpm-lock.yaml": "lockfileVersion: '6.0'\n" },
      "pnpm@>=8.15.0 <9.0.0-0",
    ],
    ["between two", { engines: { pnpm: "<9.3.0" } }, pnpm, "pnpm@<9.3.0 >=9.0.0 <10.0.0-0"],
    ["newer than the lock file", { engines: { pnpm: ">=11" } }, pnpm, "pnpm@11"],
    ["that no lock file of its version is of", { engines: { pnpm: "^6.2" } }, pnpm, "pnpm@>=6.2.0 <7.0.0-0"],
    ["that is no range", { engines: { pnpm: "$(id)" } }, pnpm, "pnpm@10"],
    ["of devEngines", { devEngines: { packageManager: { name: "pnpm", version: "9.x" } } }, pnpm, "pnpm@9"],
    ["of Volta", { volta: { pnpm: "9.12.3" }, engines: { pnpm: ">=9" } }, pnpm, "pnpm@9.12.3"],
    ["of mise", {}, { ...pnpm, "mise.toml": 'tools.pnpm = "9"\n' }, "pnpm@9"],
    ["classic whatever newer one is allowed", { engines: { yarn: ">=1.0.0" } }, classic, "yarn@1"],
    ["of Yarn 3", { engines: { yarn: ">=3" } }, berry, "yarn@3"],
    ["of Yarn without a lock file", { engines: { yarn: "4.x" } }, {}, "yarn@4"],
    ["classic without a lock file", { engines: { yarn: "1.x" } }, {}, "yarn@1"],
  ])("is the one %s", (_, more, files, release) => {
    const app = node({ ...start, ...more }, files);
    expect(app).toMatchObject({ release });
    expect(generateDockerfile(app, variables)).toContain(`corepack install --global '${release}'"`);
  });

  it("is left to Corepack where packageManager names one", () =>
    expect(node({ ...start, packageManager: "pnpm@9.1.0", engines: { pnpm: ">=10" } }, pnpm)).toMatchObject({
      release: null,
    }));

  it.each<[string, object, Files, string]>([
    ["nobody names", {}, {}, "bun"],
    ["engines asks for", { engines: { bun: "^1.3.0" } }, {}, "bun@>=1.3.0 <2.0.0-0"],
    [".bun-version names", {}, { ".bun-version": "1.3.14\n" }, "bun@1.3.14"],
    ["mise names", {}, { "mise.toml": 'tools.bun = "1.3.14"\n' }, "bun@1.3.14"],
    ["is a word", {}, { ".bun-version": "canary\n" }, "bun"],
    ["is hostile", {}, { ".bun-version": "1'; id '" }, "bun"],
  ])("of Bun's is the one that %s", (_, more, files, bun) => {
    const app = node({ ...start, ...more }, { "bun.lock": "", ...files });
    expect(app).toMatchObject({ bun });
    expect(generateDockerfile(app, variables)).toContain(` '${bun}'"]`);
  });
});

describe("the packages' install scripts", () => {
  const allowed =
    /^ENV .*NPM_CONFIG_DANGEROUSLY_ALLOW_ALL_BUILDS=true PNPM_CONFIG_DANGEROUSLY_ALLOW_ALL_BUILDS=true/gm;
  it.each<[string, object, Files]>([
    ["with a lock file of pnpm 9", {}, pnpm],
    ["without one", {}, { "pnpm-workspace.yaml": "packages: []\n" }],
    ["where engines allows a release that runs them all", { engines: { pnpm: ">=9" } }, pnpm],
    ["of a workspace", {}, { ...pnpm, "pnpm-workspace.yaml": "packages:\n  - packages/*\n" }],
  ])("are run by whatever pnpm is taken where nobody says which: %s", (_, more, files) =>
    expect(dockerfile({ ...start, ...more }, files).match(allowed)).toHaveLength(1),
  );

  it.each<[string, object, Files]>([
    ["package.json names the release", { packageManager: "pnpm@10.2.0" }, pnpm],
    ["engines asks for one that runs none by itself", { engines: { pnpm: "^10" } }, pnpm],
    ["package.json approves some", { pnpm: { onlyBuiltDependencies: [] } }, pnpm],
    [
      "the workspace approves some",
      {},
      { ...pnpm, "pnpm-workspace.yaml": "allowBuilds:\n  esbuild: false\n" },
    ],
    [
      "the workspace refuses some",
      {},
      { ...pnpm, "pnpm-workspace.yaml": "ignoredBuiltDependencies: [esbuild]\n" },
    ],
    [".npmrc says it", {}, { ...pnpm, ".npmrc": "never-built-dependencies[]=esbuild\n" }],
    ["another manager installs", {}, { "package-lock.json": "" }],
  ])("are run by the rules of pnpm where %s", (_, more, files) =>
    expect(dockerfile({ ...start, ...more }, files)).not.toMatch(allowed),
  );
});

describe("the package manager", () => {
  it.each<[string, object, Files, string]>([
    ["engines asks for pnpm", { engines: { pnpm: ">=9" } }, {}, "pnpm"],
    ["engines asks for Yarn of old", { engines: { yarn: "^1.22" } }, {}, "yarn"],
    ["engines asks for Yarn of today", { engines: { yarn: "^4" } }, {}, "berry"],
    ["engines asks for Bun", { engines: { bun: "1" } }, {}, "bun"],
    [".bun-version is there", {}, { ".bun-version": "1.3.14" }, "bun"],
    [
      "it has a lock file, whatever engines say",
      { engines: { pnpm: "9" } },
      { "package-lock.json": "" },
      "npm",
    ],
    ["engines keeps it away", { engines: { npm: ">=10", yarn: "please-use-npm" } }, {}, "npm"],
    ["engines says which of two lock files", { engines: { yarn: "1" } }, { ...classic, ...pnpm }, "yarn"],
    ["packageManager is before engines", { packageManager: "pnpm@9.1.0", engines: { bun: "1" } }, {}, "pnpm"],
  ])("is chosen where %s", (_, more, files, packageManager) =>
    expect(node({ ...start, ...more }, files)).toMatchObject({ packageManager }),
  );
});

describe("Yarn", () => {
  it("2 is taken from its own host, also where only the lock file tells that it is that", () => {
    const old = { "yarn.lock": "__metadata:\n  version: 4\n", ".yarnrc.yml": "" };
    expect(node(start, old)).toMatchObject({ release: "yarn@2", yarnFromNpm: false });
    expect(node({ ...start, engines: { yarn: "2.4.3" } }, old)).toMatchObject({ yarnFromNpm: false });
    expect(node({ ...start, engines: { yarn: "~3.2.2" } }, berry)).toMatchObject({ yarnFromNpm: true });
  });

  it("that lies in the repository is used as it is, and nothing is fetched", () => {
    const own = {
      ...berry,
      ".yarnrc.yml": "yarnPath: .yarn/releases/yarn-3.2.2.cjs\n",
      ".yarn/releases/yarn-3.2.2.cjs": "",
    };
    expect(node(start, own)).toMatchObject({ release: null, needsSource: true });
    const text = dockerfile(start, own);
    expect(text).not.toMatch(/corepack (?:enable|install)/);
    expect(text.match(/exec node \/app\/\.yarn\/releases\/yarn-3\.2\.2\.cjs/g)).toHaveLength(2);
    for (const yarnPath of ["../yarn.cjs", "/etc/yarn.cjs", "a'$(id).cjs", ".yarn/releases/other.cjs"])
      expect(
        node(start, { ...own, ".yarnrc.yml": `yarnPath: ${JSON.stringify(yarnPath)}\n`, "a'$(id).cjs": "" }),
      ).toMatchObject({ yarnFile: null, release: "yarn@3" });
  });
});

describe("a package-lock.json", () => {
  const [line] = parseInstructions(dockerfile(start, { "package-lock.json": "" })).instructions.filter(
    ({ text }) => text.includes("npm ci"),
  );
  const [program = "", ...args] = JSON.parse(line?.text.replace(/^RUN.*? (?=\[)/, "") ?? "[]") as string[];

  /** What is run with a npm that fails at `npm ci` and writes this into its log. */
  function install(log: string | null) {
    const folder = temporaryFolder();
    const npm = `#!/bin/sh\necho "$1"\n[ "$1" = ci ] || exit 0\nmkdir -p ${folder}/logs && cat ${folder}/said > ${folder}/logs/1-debug-0.log\nexit ${log === null ? 0 : 7}\n`;
    writeFileSync(join(folder, "npm"), npm, { mode: 0o755 });
    writeFileSync(join(folder, "said"), log ?? "");
    const own = args.map((arg) => arg.replaceAll("/tmp/npm", `${folder}/logs`));
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    const { status, stdout, stderr } = spawnSync(program, own, { env, encoding: "utf8" });
    return { status, ran: stdout.trim().split("\n"), stderr };
  }

  it("that fits is installed to the letter", () =>
    expect(install(null)).toEqual({ status: 0, ran: ["ci"], stderr: "" }));

  it("that does not fit package.json is completed, and the log says so", () => {
    const log = "verbose stack Error: `npm ci` can only install packages when your package.json and …";
    expect(install(log)).toEqual({
      status: 0,
      ran: ["ci", "install"],
      stderr: expect.stringMatching(
        /^package-lock\.json does not match package\.json.* commit package-lock\.json\.\n$/,
      ),
    });
  });

  it("of an install that fails for another reason is not set aside", () =>
    expect(install("error 404 Not Found")).toMatchObject({ status: 1, ran: ["ci"], stderr: "" }));
});

describe("a Bun app", () => {
  it("starts what bun init calls the module, where the repository has it", () => {
    const files = { "bun.lock": "", "src/web.tsx": "" };
    expect(node({ module: "./src/web.tsx" }, files)).toMatchObject({ startCommand: "bun src/web.tsx" });
    expect(() => node({ module: "dist/index.js" }, files)).toThrow(/neither a "start" script/);
    expect(() => node({ module: "src/web.tsx" }, { "src/web.tsx": "" })).toThrow(/neither a "start" script/);
  });
});
