import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import { aptPackages, notesOf, procfileRelease } from "../../agent/image-build/detect/sources.ts";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import { workspaceOf } from "../../agent/image-build/detect/workspace.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import type { BuildVariables } from "../../agent/image-build/dockerfile/instructions.ts";
import { frameworkOf } from "../../agent/image-build/inspect/frameworks.ts";
import { parseInstructions } from "../../protocol/dockerfile.ts";
import { isRead, readSources } from "../../agent/image-build/read-sources.ts";
import { JobError } from "../../agent/job.ts";
import { sourcesOf } from "../support/sources.ts";
import { computedMs, slowness } from "../support/computed.ts";
import { dockerfileWith, node, none, plan, type Files } from "../support/detected.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);
const instructions = (text: string) => parseInstructions(text).instructions;
const start = { scripts: { start: "node ." } };

const django = { "manage.py": 'setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")', "shop/wsgi.py": "" };
const gin = { "go.mod": "module a", "go.sum": "x", "main.go": "package main\n" };
const laravel = {
  "composer.json": JSON.stringify({ require: { php: "^8.2", "laravel/framework": "^12" } }),
  "composer.lock": "{}",
  "public/index.php": "",
  artisan: "",
};
const rails = {
  Gemfile: 'source "https://rubygems.org"\nruby "3.3.1"\ngem "rails"\ngem "pg"\n',
  "Gemfile.lock": "GEM\n  specs:\n    pg (1.5.0)\n    propshaft (1.0.0)\n    puma (6.0.0)\n",
  "bin/rails": "",
  "config.ru": "",
};
const vite = { scripts: { dev: "vite", build: "vite build" }, devDependencies: { vite: "7" } };

describe("the version of Node", () => {
  it.each([
    ["20.x", 20],
    ["^18.17.0", 18],
    [">=18", 24],
    [">= 18.0.0 < 23", 22],
    ["18 || 20", 20],
    ["<21.5", 20],
    ["16 - 18", 18],
    ["v22", 22],
    ["*", 24],
    ["latest", 24],
    [">=90", 24],
    ["12.x", 12],
    [">=8 <13", 12],
  ])("is the first that engines.node %s allows", (range, major) =>
    expect(node({ ...start, engines: { node: range } })).toMatchObject({ major }),
  );

  it.each<[string, object, number]>([
    ["Volta pins, whatever else would do", { volta: { node: "20.11.1" }, engines: { node: ">=18" } }, 20],
    ["devEngines names", { devEngines: { runtime: { name: "node", version: "^22.4.0" } } }, 22],
    ["nobody names", { volta: { extends: "../package.json" }, devEngines: { runtime: { name: "bun" } } }, 24],
    ["is hostile", { volta: "$(id)", devEngines: { runtime: [1] } }, 24],
  ])("is the one that %s", (_, more, major) => expect(node({ ...start, ...more })).toMatchObject({ major }));

  it.each([
    ["v20.11.1\n", 20],
    ["22", 22],
    ["lts/iron", 20],
    ["lts/*", 24],
    ["node", 24],
    ["# what the team runs\n22.11.0\n", 22],
    ["$(id)", 18],
  ])("is that of a version file first: %j", (text, major) =>
    expect(node({ ...start, engines: { node: "18" } }, { ".nvmrc": text })).toMatchObject({ major }),
  );

  it("may also be named in asdf's or mise's file, as that of any language", () => {
    const tools = {
      ".tool-versions": "# ours\nnodemon 9\nnodejs 22.4.1\npython  3.12.4\nruby 3.3.1\nphp 8.3.2\n",
    };
    const mise = { "mise.toml": '[tools]\nnode = "22"\npython = ["3.12"]\nruby = "3.3"\nphp = "8.3"\n' };
    for (const files of [tools, mise]) {
      expect(node(start, files)).toMatchObject({ major: 22 });
      expect(node(start, { ...files, ".nvmrc": "20" })).toMatchObject({ major: 20 });
      expect(plan({ ...files, "main.py": "" })).toMatchObject({ version: "3.12" });
      expect(plan({ ...files, Gemfile: "", "config.ru": "" })).toMatchObject({ version: "3.3" });
      expect(plan({ ...files, "index.php": "" })).toMatchObject({ version: "8.3" });
    }
  });

  it("that cannot be had here is replaced by the usual one, and the Dockerfile says so", async () => {
    const old = node(start, { ".nvmrc": "20" });
    const offline = await chooseBaseImages(old, () => Promise.resolve(false));
    const text = generateDockerfile(old, variables, offline.images, offline.notes);
    expect(text).toMatch(/^# This host cannot get node:20-bookworm-slim: node:24-bookworm-slim is used/);
    expect(text).toContain("FROM node:24-bookworm-slim");
    const online = await chooseBaseImages(old, () => Promise.resolve(true));
    expect(generateDockerfile(old, variables, online.images, online.notes)).toContain(
      "FROM node:20-bookworm-slim",
    );
  });
});

describe("a Node app", () => {
  it("with Yarn's lock file is told apart by what the file says", () => {
    expect(node(start, { "yarn.lock": "# yarn lockfile v1\n" })).toMatchObject({ packageManager: "yarn" });
    expect(node(start, { "yarn.lock": "__metadata:\n  version: 6\n" })).toMatchObject({
      packageManager: "berry",
      release: "yarn@3",
    });
  });

  it("with the lock files of two package managers is installed by the one that package.json names", () => {
    const locks = { "package-lock.json": "{}", "yarn.lock": "# yarn lockfile v1\n" };
    expect(node(start, locks)).toMatchObject({ packageManager: "yarn" });
    expect(node({ ...start, packageManager: "npm@10.9.0" }, locks)).toMatchObject({
      packageManager: "npm",
      manifests: ["package.json", "package-lock.json"],
    });
  });

  it("takes Yarn from npm's registry, by the release that its lock file is of", () => {
    const app = { ...start, dependencies: { a: "1" } };
    const classic = node(app, { "yarn.lock": "# yarn lockfile v1\n" });
    expect(classic).toMatchObject({ release: "yarn@1", yarnFromNpm: true });
    const lock = { "yarn.lock": "__metadata:\n  version: 8\n", ".yarnrc.yml": "yarnPath: .yarn/yarn.cjs\n" };
    const berry = node(app, lock);
    expect(berry).toMatchObject({ release: "yarn@4", yarnFromNpm: true });
    const fromNpm = /^ENV .*COREPACK_NPM_REGISTRY=https:\/\/registry\.npmjs\.org/m;
    expect(generateDockerfile(berry, variables)).toMatch(fromNpm);
    // npm's registry has not every 2.x.
    const old = node({ ...app, packageManager: "yarn@2.4.3" }, lock);
    expect(generateDockerfile(old, variables)).not.toMatch(fromNpm);
  });

  it("is not looked at by pnpm for another release of itself, which Corepack has chosen", () => {
    const app = node(
      { ...start, packageManager: "pnpm@12.21.0", dependencies: { a: "1" } },
      { "pnpm-lock.yaml": "" },
    );
    expect(generateDockerfile(app, variables).match(/^ENV .*PNPM_CONFIG_PM_ON_FAIL=ignore/gm)).toHaveLength(
      2,
    );
  });

  it("is installed with the owner's build variables before those of ours", () => {
    const app = node({ ...start, dependencies: { a: "1" } }, { "pnpm-lock.yaml": "" });
    const given = { ...variables, plain: ["COREPACK_INTEGRITY_KEYS"], secret: ["COREPACK_ENABLE_STRICT"] };
    const [build = ""] = generateDockerfile(app, given).split(/\nFROM /);
    expect(build).toMatch(/^ENV COREPACK_HOME=.*COREPACK_ENABLE_DOWNLOAD_PROMPT=0/m);
    expect(build).not.toMatch(/^ENV .*(?:KEYS|STRICT)=/m);
    const bun = node({ ...start, dependencies: { a: "1" } }, { "bun.lock": "" });
    expect(generateDockerfile(bun, { ...variables, plain: ["DO_NOT_TRACK"] })).not.toMatch(/^ENV ?$/m);
  });

  it("is installed by its lock file where package.json names a package manager that has none", () => {
    const pnpm = { "pnpm-lock.yaml": "lockfileVersion: '6.0'\n" };
    const app = node({ ...start, packageManager: "yarn@4.9.1", dependencies: { a: "1" } }, pnpm);
    expect(app).toMatchObject({ packageManager: "pnpm", locked: true, release: "pnpm@8" });
    // Corepack would refuse to run pnpm, or to fetch it from a mirror of the registry.
    expect(
      generateDockerfile(app, variables).match(/^ENV .*COREPACK_ENABLE_STRICT=0 COREPACK_INTEGRITY_KEYS=0/gm),
    ).toHaveLength(2);
    const yarn = { "yarn.lock": "# yarn lockfile v1\n" };
    expect(node({ ...start, packageManager: "pnpm@9.0.0" }, yarn)).toMatchObject({ packageManager: "yarn" });
  });

  it("is installed by the release that wrote the lock file, unless package.json names one", () => {
    const lock = { "pnpm-lock.yaml": "lockfileVersion: '6.0'\n" };
    expect(node(start, lock)).toMatchObject({ release: "pnpm@8" });
    expect(node({ ...start, packageManager: "pnpm@9.1.0" }, lock)).toMatchObject({ release: null });
  });

  it.each<[string, object, Files]>([
    ["workspaces", { workspaces: ["packages/*"] }, {}],
    ["a preinstall script", { scripts: { start: "node .", preinstall: "node make.js" } }, {}],
    ["a script for an npm of old", { scripts: { start: "node .", prepare: "husky" } }, { ".nvmrc": "14" }],
    ["a dependency in the repository", { dependencies: { a: "file:./a" } }, {}],
    ["Yarn's own folder", {}, { ".yarn/releases/yarn.cjs": "" }],
    ["C++ of its own", {}, { "binding.gyp": "" }],
    ["hooks of pnpm's", {}, { ".pnpmfile.cjs": "" }],
    ["hooks of pnpm's as a module", {}, { ".pnpmfile.mjs": "" }],
    ["patches in a folder of their own", { pnpm: { patchedDependencies: { b: "fixes/b.patch" } } }, {}],
    [
      "patches that pnpm's settings name",
      {},
      { "pnpm-workspace.yaml": "patchedDependencies:\n  b: fixes/b.patch\n", "package-lock.json": "" },
    ],
    ["what tells Puppeteer where its browser goes", {}, { ".puppeteerrc.cjs": "" }],
    ["the same under its other name", {}, { "puppeteer.config.js": "" }],
  ])("with %s has its whole source when it is installed", (_, manifest, files) => {
    const text = generateDockerfile(
      node({ ...start, dependencies: { b: "1" }, ...manifest }, files),
      variables,
    );
    expect(text.slice(0, text.indexOf("npm install"))).toContain("COPY source/ ./");
  });

  it.each<[string, Files, RegExp]>([
    ["npm", { "package-lock.json": "" }, /npm ci .*\]\n/],
    ["pnpm", { "pnpm-lock.yaml": "" }, /pnpm install --frozen-lockfile"\]\n/],
    ["Yarn", { "yarn.lock": "" }, /yarn install --frozen-lockfile"\]\n/],
    ["Bun", { "bun.lock": "" }, /bun install --frozen-lockfile"\]\n/],
  ])(
    "of %s is not installed anew for a change of its source, though a script of its own follows the install",
    (_, lock, install) => {
      const scripts = { start: "node .", postinstall: "prisma generate", prepare: "husky" };
      const text = generateDockerfile(node({ scripts, dependencies: { b: "1" } }, lock), variables);
      const [before = "", after = ""] = text.split("COPY source/ ./\n");
      expect(before).toMatch(install);
      expect(before).toContain("; npm pkg delete scripts.postinstall scripts.prepare && ");
      expect(after).toMatch(/^RUN .*env_TOKEN.*; (\w+) run postinstall && \1 run prepare"\]\n/);
    },
  );

  it("of Yarn 2 or later runs those scripts that its install runs", () =>
    expect(
      node({ scripts: { start: "node .", postinstall: "a", prepare: "b" } }, { "yarn.lock": "__metadata:" }),
    ).toMatchObject({ needsSource: false, ownScripts: ["postinstall"] }));

  it("runs none of them where .npmrc leaves scripts out", () =>
    expect(
      node(
        { scripts: { start: "node .", prepare: "husky" }, dependencies: { a: "1" } },
        { ".npmrc": "ignore-scripts = true" },
      ),
    ).toMatchObject({ needsSource: false, ownScripts: [] }));

  it.each<[string, string, string]>([
    ["nuxt", "nuxt build", "node .output/server/index.mjs"],
    ["@sveltejs/adapter-node", "vite build", "node build"],
    ["@astrojs/node", "astro build", "node dist/server/entry.mjs"],
    ["next", "next build", "node_modules/.bin/next start"],
  ])("that is a server of %s is started without a script that says so", (dependency, build, startCommand) =>
    expect(node({ scripts: { build }, dependencies: { [dependency]: "1", vite: "7" } })).toMatchObject({
      kind: "node",
      startCommand,
    }),
  );

  it("of Angular that renders on the server is started by the script that says so", () =>
    expect(
      node({
        scripts: {
          start: "ng serve",
          build: "ng build",
          "serve:ssr:shop": "node dist/shop/server/server.mjs",
        },
        dependencies: { "@angular/core": "20", "@angular/ssr": "20" },
      }),
    ).toMatchObject({ kind: "node", startCommand: "node dist/shop/server/server.mjs" }));

  it("of pnpm or Yarn needs no network when it starts", () => {
    const text = dockerfile({ "package.json": JSON.stringify(start), "pnpm-lock.yaml": "" });
    const last = text.slice(text.lastIndexOf("FROM "));
    expect(last).toContain("COPY --from=build /opt/corepack /opt/corepack");
    expect(last).toContain("COREPACK_HOME=/opt/corepack");
    expect(text).toMatch(/COREPACK_HOME=\/opt\/corepack[^]*"pnpm --version"[^]*FROM/);
  });

  it.each<[string, object, { start: string; isPruned: boolean }]>([
    [
      "Nest's template",
      {
        scripts: { build: "nest build", start: "nest start", "start:prod": "node dist/main" },
        devDependencies: { "@nestjs/cli": "11" },
      },
      { start: "npm run start:prod", isPruned: true },
    ],
    [
      "nodemon",
      { scripts: { start: "nodemon server.js" }, devDependencies: { nodemon: "3" } },
      { start: "npm start", isPruned: false },
    ],
    [
      "a build before the start",
      {
        scripts: { start: "npm run build && node dist", build: "tsc" },
        devDependencies: { typescript: "5" },
      },
      { start: "node dist", isPruned: true },
    ],
    [
      "a build before the start that no other builds",
      {
        scripts: { start: "npm run compile && node dist", compile: "tsc", build: "echo" },
        devDependencies: { typescript: "5" },
      },
      { start: "npm start", isPruned: false },
    ],
    [
      "a loader",
      { scripts: { start: "node -r ts-node/register src/app.ts" }, devDependencies: { "ts-node": "10" } },
      { start: "node -r ts-node/register src/app.ts", isPruned: false },
    ],
    [
      "Qwik's server, which imports some of it",
      {
        scripts: { build: "qwik build", serve: "node server/entry.express", start: "vite --open --mode ssr" },
        devDependencies: { "@builder.io/qwik-city": "1", undici: "*" },
      },
      { start: "node server/entry.express", isPruned: false },
    ],
    [
      "its own server",
      { scripts: { start: "remix-serve build" }, devDependencies: { vite: "7" } },
      { start: "npm start", isPruned: true },
    ],
  ])("that is started by %s still has what starts it", (_, manifest, { start: startCommand, isPruned }) => {
    const files = { "package.json": JSON.stringify({ dependencies: { express: "5" }, ...manifest }) };
    expect(plan(files)).toMatchObject({ kind: "node", startCommand });
    expect(dockerfile(files).includes("npm prune")).toBe(isPruned);
  });

  it.each([
    ["2 and 3, which cannot leave it out", "[ $1 != workspaces ]", ""],
    ["4", "true", "workspaces focus --all --production"],
  ])("of Yarn %s, keeps or leaves out what is for development", (_, knows, asked) => {
    const manifest = JSON.stringify({ ...start, devDependencies: { typescript: "5" } });
    const files = { "package.json": manifest, "yarn.lock": "__metadata:\n  version: 6\n" };
    const line = instructions(dockerfile(files)).find(({ text }) => text.includes("--production"));
    const folder = temporaryFolder();
    const yarn = `#!/bin/sh\n[ "$3" = --help ] && { ${knows}; exit $?; }\necho "$@"\n`;
    writeFileSync(join(folder, "yarn"), yarn, { mode: 0o755 });
    const [program = "", ...args] = JSON.parse(line?.text.replace(/^RUN.*? (?=\[)/, "") ?? "[]") as string[];
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    expect(execFileSync(program, args, { env, encoding: "utf8" }).trim()).toBe(asked);
  });

  it.each([
    ["npm", "package-lock.json", /npm prune --omit=dev --ignore-scripts/],
    ["pnpm", "pnpm-lock.yaml", /NPM_CONFIG_IGNORE_SCRIPTS=true pnpm prune/],
    ["Yarn", "yarn.lock", /yarn install --production --ignore-scripts/],
  ])(
    "of %s runs no script of its own, such as husky's, when what is for development is gone",
    (_, lock, prune) => {
      const scripts = { start: "node .", prepare: "husky" };
      const manifest = JSON.stringify({ scripts, devDependencies: { husky: "9" } });
      expect(dockerfile({ "package.json": manifest, [lock]: "" })).toMatch(prune);
    },
  );

  it("of Next.js still has TypeScript when it starts, where its configuration is TypeScript", () => {
    const next = {
      scripts: { build: "next build", start: "next start" },
      dependencies: { next: "16" },
      devDependencies: { typescript: "5" },
    };
    const isPruned = (files: Files) =>
      dockerfile({ "package.json": JSON.stringify(next), ...files }).includes("npm prune");
    expect(isPruned({ "next.config.ts": "" })).toBe(false);
    expect(isPruned({ "next.config.mjs": "" })).toBe(true);
  });

  it("has its dependencies in a layer of their own, which stays while they do", () => {
    const manifest = { ...start, dependencies: { express: "5" } };
    const last = (files: Files) => dockerfile(files).split(/^(?=FROM )/m)[1];
    const built = { ...manifest, scripts: { ...manifest.scripts, build: "tsc" } };
    expect(last({ "package.json": JSON.stringify(built) })).toMatch(
      /\/app\/node_modules \/app\/node_modules\nCOPY --from=build --chown=node:node \/srv\/own \/app\n/,
    );
    // Where nothing is built, the source needs no stage.
    expect(last({ "package.json": JSON.stringify(manifest) })).toMatch(
      /\/app\/node_modules \/app\/node_modules\nCOPY --chown=node:node source\/ \/app\/\n/,
    );
    const made = { scripts: { ...manifest.scripts, postinstall: "node make.js" } };
    expect(last({ "package.json": JSON.stringify({ ...manifest, ...made }) })).toContain("/srv/own /app");
    const whole = /COPY --from=build --chown=node:node \/app \/app\n/;
    expect(last({ "package.json": JSON.stringify(start) })).toMatch(whole);
    expect(last({ "package.json": JSON.stringify({ ...manifest, workspaces: ["a"] }) })).toMatch(whole);
  });

  it("of pnpm is a workspace where pnpm-workspace.yaml names packages, and not where it has settings only", () => {
    const files = { "package.json": JSON.stringify(start), "pnpm-lock.yaml": "" };
    const settings = { ...files, "pnpm-workspace.yaml": "onlyBuiltDependencies:\n  - bcrypt\n" };
    expect(plan(settings)).toMatchObject({ isWorkspace: false, needsSource: false });
    expect(plan(settings)).toMatchObject({ manifests: expect.arrayContaining(["pnpm-workspace.yaml"]) });
    const packages = { ...files, "pnpm-workspace.yaml": "packages:\n  - apps/*\n" };
    expect(plan(packages)).toMatchObject({ isWorkspace: true, needsSource: true });
  });

  it("of Next.js goes on from what the last build compiled, which is not in the image", () => {
    const text = dockerfile({
      "package.json": JSON.stringify({
        ...start,
        dependencies: { next: "16" },
        scripts: { build: "next build" },
      }),
    });
    expect(text).toMatch(
      /^RUN --mount=type=cache,id=site_x-packages-turbopack,target=\/app\/\.next\/cache\/turbopack --mount=type=cache,id=site_x-packages-webpack,target=\/app\/\.next\/cache\/webpack .*npm run build"/m,
    );
    expect(dockerfile({ "package.json": JSON.stringify(start) })).not.toContain(".next");
  });

  it("of Next.js is what it puts together itself, where its configuration says so", () => {
    const next = { scripts: { build: "next build", start: "next start" }, dependencies: { next: "16" } };
    const files = {
      "package.json": JSON.stringify({ ...next, devDependencies: { typescript: "5" } }),
      "next.config.ts": 'const nextConfig = {\n  output: "standalone",\n};\n',
    };
    const text = dockerfile(files);
    expect(text).toMatch(
      /\.next\/standalone \/app\nCOPY .*\/app\/\.next\/static \/app\/\.next\/static\nCOPY .*\/app\/public \/app\/public\n[^]*exec env HOSTNAME=0\.0\.0\.0 node server\.js"/,
    );
    expect(text).not.toMatch(/prune|\/app \/app/);
    const moved = { ...files, "next.config.ts": `${files["next.config.ts"]}outputFileTracingRoot: ".."` };
    // What it runs may be a package that Next.js does not collect.
    const releaseCommand = "npx prisma migrate deploy";
    for (const whole of [
      dockerfile(files, { startCommand: "npm start" }),
      dockerfile(moved),
      dockerfile(files, { releaseCommand }),
      dockerfile({ ...files, Procfile: `release: ${releaseCommand}\n` }),
    ])
      expect(whole).not.toContain("standalone");
    const asked = { ...files, "next.config.ts": '  output: process.env.X ? "standalone" : undefined' };
    const mixed = { ...files, "next.config.ts": '...(process.env.X && { output: "standalone" }),' };
    for (const whole of [dockerfile(asked), dockerfile(mixed)]) expect(whole).not.toContain("standalone");
    const own = JSON.stringify({
      ...next,
      scripts: { ...next.scripts, start: "node migrate.js && next start" },
    });
    expect(dockerfile({ ...files, "package.json": own })).not.toContain("standalone");
  });

  it("collects its garbage before a build has used up its memory, unless its owner says how", () => {
    const heap = (more: Partial<BuildVariables>) =>
      generateDockerfile(node(start), { ...variables, memoryMb: 2048, ...more });
    const [build = "", last = ""] = heap({}).split(/^(?=FROM )/m);
    expect(build).toMatch(/^ENV .* NODE_OPTIONS="--max-old-space-size=1792"$/m);
    expect(last).not.toContain("NODE_OPTIONS");
    expect(heap({ plain: ["NODE_OPTIONS"] })).not.toContain("max-old-space-size");
    expect(heap({ secret: ["NODE_OPTIONS"] })).not.toContain("max-old-space-size");
  });

  it("of Bun is installed by its lock file, built and started by Bun", () => {
    const hono = { scripts: { dev: "bun run --hot src/index.ts" }, devDependencies: { "@types/bun": "1" } };
    const files = {
      "package.json": JSON.stringify(hono),
      "bun.lock": "",
      "bunfig.toml": "",
      "src/index.ts": "",
    };
    expect(plan(files)).toMatchObject({
      packageManager: "bun",
      bun: "bun",
      startCommand: "bun src/index.ts",
    });
    const built = {
      ...hono,
      scripts: { build: "bun build x", start: "bun dist" },
      packageManager: "bun@1.2.3",
    };
    const [build, last] = dockerfile({ ...files, "package.json": JSON.stringify(built) }).split(
      /^(?=FROM )/m,
    );
    expect(build).toMatch(
      /npm install --global --prefix \/opt\/bun 'bun@1\.2\.3'"[^]*PATH=\/opt\/bun\/bin:[^]*COPY .*\/bun\.lock source\/bunfig\.toml [^]*bun install --frozen-lockfile"[^]*bun run build"/,
    );
    expect(build).not.toMatch(/corepack|prune/);
    expect(last).toMatch(
      /COPY --from=build \/opt\/bun \/opt\/bun\nENV PATH=\/opt\/bun\/bin:[^]*exec bun start"/,
    );
    expect(node({ ...start, packageManager: "bun@$(id)" }, { "bun.lockb": "" })).toMatchObject({
      bun: "bun",
    });
  });

  it("without packages of its own is installed where a script of it installs those of its folders", () => {
    const scripts = { postinstall: "cd server && npm install", start: "node server" };
    expect(dockerfile({ "package.json": JSON.stringify({ scripts }) })).toMatch(
      /COPY source\/ \.\/\nRUN .*npm run postinstall"/,
    );
    expect(dockerfile({ "package.json": JSON.stringify(start) })).not.toContain("npm install");
  });

  it("that Bun starts has it, whatever installs its packages", () => {
    for (const start of ["bun run index.ts", "NODE_ENV=production bun src/index.ts"])
      expect(node({ scripts: { start } }, { "package-lock.json": "" })).toMatchObject({
        packageManager: "npm",
        bun: "bun",
      });
    expect(node(start, { "package-lock.json": "" }, { startCommand: "bunx serve" })).toMatchObject({
      bun: "bun",
    });
    expect(node(start, { "bun.lock": "", "package-lock.json": "" })).toMatchObject({ bun: null });
    const deno = { scripts: { start: "deno run main.ts" } };
    expect(() => node(deno)).toThrow(/Deno, .* add the package deno .* or add a Dockerfile/);
    expect(node({ ...deno, dependencies: { deno: "2" } })).toMatchObject({ startCommand: "npm start" });
  });

  it.each<[string, object, Files, object]>([
    [
      "SvelteKit as its generator makes it",
      { ...vite, devDependencies: { "@sveltejs/kit": "2", "@sveltejs/adapter-auto": "7", vite: "8" } },
      {},
      { buildCommand: "export GCP_BUILDPACKS=1; npm run build", startCommand: "node build" },
    ],
    [
      "AdonisJS, whose build is a folder of its own",
      {
        scripts: { start: "node bin/server.js", build: "node ace build" },
        dependencies: { "@adonisjs/core": "6" },
      },
      {},
      { startCommand: "cd build && HOST=0.0.0.0 node bin/server.js" },
    ],
    [
      "Medusa, whose build is a folder of its own",
      { scripts: { start: "medusa start", build: "medusa build" } },
      {},
      { startCommand: "cd .medusa/server && npm start" },
    ],
    [
      "Medusa of the first version, which starts where it is",
      { scripts: { start: "medusa start", build: "tsc" } },
      {},
      { startCommand: "npm start" },
    ],
    [
      "Qwik with an adapter",
      {
        scripts: { build: "qwik build", start: "vite --open --mode ssr", serve: "node server/entry.express" },
        devDependencies: { "@builder.io/qwik-city": "1", vite: "7" },
      },
      { "adapters/": "" },
      { startCommand: "node server/entry.express" },
    ],
    [
      "Nitro itself",
      { scripts: { build: "nitro build", dev: "nitro dev" }, devDependencies: { nitropack: "2" } },
      {},
      { startCommand: "node .output/server/index.mjs" },
    ],
    [
      "Analog, which is Angular's and starts as Vite does",
      {
        scripts: { start: "vite", build: "vite build" },
        dependencies: { "@angular/core": "22" },
        devDependencies: { "@analogjs/platform": "2", vite: "7" },
      },
      { "index.html": "" },
      { startCommand: "node dist/analog/server/index.mjs" },
    ],
    [
      "TanStack Start with Nitro",
      { ...vite, dependencies: { "@tanstack/react-start": "1", nitro: "3" } },
      {},
      { startCommand: "node .output/server/index.mjs" },
    ],
  ])("of %s is a server", (_, manifest, files, expected) =>
    expect(node(manifest, files)).toMatchObject({ kind: "node", ...expected }),
  );

  it("of Analog is served as files where its configuration has it make no server", () =>
    expect(
      node(
        { ...vite, dependencies: { "@angular/core": "22" }, devDependencies: { "@analogjs/platform": "2" } },
        { "vite.config.ts": "plugins: [analog({ static: true })]" },
      ),
    ).toMatchObject({ kind: "site", outputs: ["dist/analog/public"] }));

  it("of SvelteKit has its adapter for a server by the owner's own build command, too", () => {
    const kit = { ...vite, devDependencies: { "@sveltejs/kit": "2", "@sveltejs/adapter-auto": "7" } };
    expect(node(kit, {}, { buildCommand: "make" })).toMatchObject({
      buildCommand: "export GCP_BUILDPACKS=1; make",
      startCommand: "node build",
    });
  });

  it.each<[string, object, Files, string | null]>([
    [
      "names and the repository lacks",
      { scripts: { start: "node --env-file=.env src/index.js" } },
      {},
      ".env",
    ],
    [
      "names first, with a build before",
      { scripts: { start: "tsx --env-file ./.env.local a.ts", build: "tsc" } },
      {},
      ".env.local",
    ],
    [
      "names and the repository has",
      { scripts: { start: "node --env-file=.env ." } },
      { ".env": "A=1" },
      null,
    ],
    ["can do without", { scripts: { start: "node --env-file-if-exists=.env ." } }, {}, null],
    [
      "would name with other commands",
      { scripts: { start: "node --env-file=$(id) --env-file=../a --env-file=.env;id ." } },
      {},
      null,
    ],
  ])("has an empty file of variables where the start script %s it", (_, manifest, files, file) => {
    const text = dockerfile({ "package.json": JSON.stringify(manifest), ...files });
    if (file === null) expect(text).not.toContain("touch");
    else expect(text).toMatch(new RegExp(`RUN \\["sh","-c","touch ${file}"\\]\nUSER node\n`));
  });

  it.each([
    "git+https://git.example/a/b.git#v1",
    "git@git.example:a/b.git",
    "github:a/b",
    "a/b#main",
    "https://git.example/a/b.git",
  ])("has Git for the package %s where it is installed, and not where it runs", (version) => {
    const files = { "package.json": JSON.stringify({ ...start, dependencies: { a: version } }) };
    const [build, last = ""] = dockerfile(files).split(/^(?=FROM )/m);
    expect(build).toMatch(/apt-get install [^"]* git ca-certificates &&/);
    expect(last).toMatch(/^FROM /);
    expect(last).not.toContain(" git ");
  });

  it.each(["^1.0.0", "./a/b", "file:a/b", "npm:@a/b@1", "workspace:*", "https://a.example/b.tgz"])(
    "has no Git for the package %s",
    (version) => {
      const files = { "package.json": JSON.stringify({ ...start, dependencies: { a: version } }) };
      expect(dockerfile(files)).not.toContain(" git ");
    },
  );

  it.each<[string, string, boolean]>([
    ["requirements.txt", "flask\nlib @ git+https://git.example/a/lib.git@v1\n", true],
    ["requirements.txt", "flask\n# lib @ git+https://git.example/a/lib.git\n", false],
    [
      "pyproject.toml",
      '[project]\nname = "a"\n[tool.uv.sources]\nlib = { git = "https://git.example/a/lib" }\n',
      true,
    ],
    ["Pipfile", '[packages.lib]\ngit = "https://git.example/a/lib"\n', true],
    ["Pipfile", '[packages]\ngitpython = "*"\n', false],
  ])("of Python has Git where %s takes a package from it: %j", (file, text, has) => {
    const lines = dockerfile({ "main.py": "", [file]: text }).split("\n");
    expect(lines.filter((line) => line.includes(" git ca-certificates"))).toHaveLength(has ? 1 : 0);
  });

  it("of vite-node is no development server of Vite's", () =>
    expect(node({ scripts: { start: "vite-node server.ts" } })).toMatchObject({ startCommand: "npm start" }));

  it("is none where package.json is there for tools only, beside a page", () =>
    expect(node({ devDependencies: { prettier: "3" } }, { "index.html": "" })).toEqual({ kind: "static" }));

  it.each([
    ["v16.20.2", true, "install --global --force corepack@0.20.0"],
    ["v18.20.8", true, ""],
    ["v24.14.0", true, ""],
    ["v25.0.0", false, "install --global --force corepack"],
  ])("of pnpm gets a Corepack that knows releases where the image of %s has none", (version, has, asked) => {
    const files = { "package.json": JSON.stringify(start), "pnpm-lock.yaml": "lockfileVersion: '6.0'\n" };
    const line = instructions(dockerfile(files)).find(({ text }) => text.includes("corepack enable"));
    const folder = temporaryFolder();
    const fake = (name: string, script: string) =>
      writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    fake("node", `echo ${version}`);
    fake("corepack", `[ -e ${folder}/has ] || exit 127`);
    fake("npm", `echo "$@"; touch ${folder}/has`);
    if (has) writeFileSync(join(folder, "has"), "");
    const [program = "", ...args] = JSON.parse(line?.text.replace("RUN ", "") ?? "[]") as string[];
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    expect(execFileSync(program, args, { env, encoding: "utf8" }).trim()).toBe(asked);
  });

  it("of Prisma has the OpenSSL that its engines load, where it is built and where it runs", () => {
    const openssl = /apt-get install [^"]*\bopenssl\b/g;
    const direct = generateDockerfile(node({ ...start, dependencies: { "@prisma/client": "6" } }), variables);
    expect(direct.match(openssl)).toHaveLength(2);
    for (const files of [
      { "pnpm-lock.yaml": "packages:\n  '@prisma/engines@6.0.0':\n", "pnpm-workspace.yaml": "" },
      { "package-lock.json": '{ "packages": { "node_modules/@prisma/engines": {} } }' },
      { "bun.lock": '"packages": {\n    "@prisma/engines": ["@prisma/engines@6.0.0"],\n' },
    ] satisfies Files[]) {
      expect(Object.keys(files).every(isRead)).toBe(true);
      expect(generateDockerfile(node(start, files), variables).match(openssl)).toHaveLength(2);
    }
    expect(generateDockerfile(node(start), variables)).not.toMatch(openssl);
  });

  it("has compilers once a package asks for one, where packages are installed", () => {
    const onDemand = /^RUN .*build-essential.* for name in python3 cc gcc .* ln -s [^]*^RUN .*npm install"/m;
    const [build = "", last = ""] = generateDockerfile(
      node({ ...start, dependencies: { bcrypt: "6" } }),
      variables,
    ).split(/^(?=FROM )/m);
    expect(build).toMatch(onDemand);
    expect(last).not.toContain("build-essential");
    expect(dockerfile({ "package.json": JSON.stringify(start) })).not.toContain("build-essential");
    const python = dockerfile({ "requirements.txt": "uwsgi", "main.py": "" });
    // The image's own python3 lies where these do.
    expect(python).toMatch(/^RUN .*build-essential.* for name in cc gcc [^]*^RUN .*pip install/m);
    expect(python).not.toContain("in python3");
  });

  it("is built by the script that Heroku runs in place of the other", () => {
    const scripts = { start: "node .", build: "tsc", "heroku-postbuild": "npm run build --prefix client" };
    expect(node({ scripts })).toMatchObject({ buildCommand: "npm run heroku-postbuild" });
  });

  it("is what has a start script, whatever else lies in the repository", () => {
    expect(node(start, { "requirements.txt": "", "main.py": "" })).toMatchObject({ kind: "node" });
    expect(node({ ...vite, scripts: { ...vite.scripts, start: "node server.js" } })).toMatchObject({
      kind: "node",
    });
  });
});

describe("an app below the root of a repository", () => {
  const web = {
    "package.json": JSON.stringify({
      scripts: { build: "next build", start: "next start" },
      dependencies: { "@shop/ui": "workspace:*" },
    }),
  };
  const turborepo = {
    "package.json": JSON.stringify({ packageManager: "pnpm@9.0.0", devDependencies: { turbo: "2" } }),
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
    "pnpm-workspace.yaml": 'packages:\n  - "apps/*"\n  - packages/**\n  - "!**/test/**"\n',
    "turbo.json": "{}",
    ".nvmrc": "22",
  };
  const below = (app: Files, root: Files, folder = "apps/web") => {
    const sources = sourcesOf(app);
    const place = [sources, sourcesOf(root), folder] as const;
    return detect({ ...sources, workspace: workspaceOf(...place), repository: repositoryOf(...place) }, none);
  };

  it("is installed by the workspace that it is a package of, and built and started in its own folder", () => {
    const app = below(web, turborepo);
    expect(app).toMatchObject({
      kind: "node",
      folder: "apps/web",
      packageManager: "pnpm",
      release: null,
      major: 22,
      buildCommand: "/app/node_modules/.bin/turbo run build --env-mode=loose",
      startCommand: "pnpm start",
    });
    const text = generateDockerfile(app, variables);
    expect(text).toMatch(
      /WORKDIR \/app\n[^]*COPY source\/ [^]*pnpm install[^]*WORKDIR \/app\/apps\/web\nRUN .*turbo run/,
    );
    // `pnpm prune` would leave the packages of the workspace without any of theirs.
    expect(text).not.toContain("pnpm prune");
    expect(text).toMatch(
      /WORKDIR \/app\nRUN .*CI=true pnpm install --prod [^]*FROM [^]*WORKDIR \/app\/apps\/web\nUSER node/,
    );
  });

  it("is built by itself without Turborepo", () => {
    const npm = { "package.json": '{"workspaces":{"packages":["apps/*"]}}', "package-lock.json": "{}" };
    expect(below(web, npm)).toMatchObject({
      folder: "apps/web",
      buildCommand: "npm run build",
      locked: true,
    });
  });

  const manifest = (name: string, more: object) => JSON.stringify({ name, ...more });
  const packages = {
    "package.json": '{"workspaces":["apps/*","packages/*"]}',
    "package-lock.json": "{}",
    "packages/ui/package.json": manifest("@shop/ui", {
      scripts: { build: "tsc" },
      dependencies: { "@shop/tokens": "*", react: "19" },
    }),
    "packages/tokens/package.json": manifest("@shop/tokens", {
      scripts: { build: "tsc" },
      devDependencies: { "@shop/ui": "*" },
    }),
    "packages/types/package.json": manifest("@shop/types", { dependencies: { "@shop/tokens": "*" } }),
    "packages/other/package.json": manifest("@shop/other", { scripts: { build: "exit 1" } }),
    "packages/broken/package.json": "{",
    "examples/ui/package.json": manifest("@shop/ui", { scripts: { build: "exit 1" } }),
    "apps/web/package.json": manifest("web", { scripts: { build: "exit 1" } }),
  };

  it("is built after the packages of the workspace that it needs, each after what it needs itself", () => {
    const app = below(web, packages);
    expect(app).toMatchObject({
      buildCommand: "npm run build",
      needed: [
        { folder: "packages/tokens", command: "npm run build" },
        { folder: "packages/ui", command: "npm run build" },
      ],
    });
    expect(generateDockerfile(app, { ...variables, secret: ["KEY"] })).toMatch(
      /npm ci[^]*\nWORKDIR \/app\/packages\/tokens\nRUN .*env_KEY.*npm run build.*\nWORKDIR \/app\/packages\/ui\nRUN .*npm run build.*\nWORKDIR \/app\/apps\/web\nRUN .*npm run build/,
    );
    const types = { "package.json": manifest("web", { ...start, dependencies: { "@shop/types": "*" } }) };
    expect(below(types, packages)).toMatchObject({
      buildCommand: null,
      needed: [{ folder: "packages/ui" }, { folder: "packages/tokens" }],
    });
  });

  it("is installed by a workspace of which nobody committed a lock file, or not at its root", () => {
    const { "package-lock.json": _, ...unlocked } = packages;
    expect(below(web, unlocked)).toMatchObject({
      folder: "apps/web",
      locked: false,
      packageManager: "npm",
      needed: [{ folder: "packages/tokens" }, { folder: "packages/ui" }],
    });
    for (const root of [unlocked, packages])
      expect(below({ ...web, "package-lock.json": "" }, root)).toMatchObject({ folder: "apps/web" });
    const types = { "package.json": manifest("web", { ...start, dependencies: { "@shop/types": "*" } }) };
    const untold = { ...unlocked, "packages/tokens/package.json": manifest("@shop/tokens", {}) };
    expect(below({ ...types, "yarn.lock": "" }, untold)).toMatchObject({ folder: "apps/web" });
    const pnpm = { ...unlocked, "package.json": "{}", "pnpm-workspace.yaml": "packages:\n  - apps/*\n" };
    expect(below(web, pnpm)).toMatchObject({ folder: "apps/web", packageManager: "pnpm", locked: false });
  });

  it.each<[string, string, Files, Files]>([
    [
      "a module of go.work",
      "go build",
      { "go.mod": "module a\n", "go.sum": "", "main.go": "package main\n" },
      { "go.work": "go 1.24\n\nuse (\n\t./libs/greeting\n\t./services/api\n)\n" },
    ],
    [
      "a module that replaces others",
      "go build",
      { "go.mod": "replace example.test/greeting => ../../libs/greeting\n", "main.go": "package main\n" },
      {},
    ],
    ["of pip", "pip install", { "requirements.txt": "-e ../../libs/greeting\n", "main.py": "" }, {}],
    [
      "of Poetry",
      "poetry install",
      { "pyproject.toml": 'greeting = { path = "../../libs/greeting" }\n', "poetry.lock": "", "main.py": "" },
      {},
    ],
    [
      "of Composer",
      "composer install",
      {
        "composer.json": JSON.stringify({
          require: { "shop/greeting": "*" },
          repositories: [{ type: "path", url: "../../libs/*" }],
        }),
        "index.php": "",
      },
      {},
    ],
    [
      "of Bundler",
      "bundle install",
      { Gemfile: 'gem "greeting", path: "../../libs/greeting"\n', "config.ru": "" },
      {},
    ],
    [
      "of npm",
      "npm install",
      {
        "package.json": JSON.stringify({ ...start, dependencies: { greeting: "file:../../libs/greeting" } }),
      },
      {},
    ],
  ])("that names a folder beyond its own is built with the whole repository: %s", (_, step, app, root) => {
    const text = generateDockerfile(below(app, root, "services/api"), variables);
    const last = text.slice(text.lastIndexOf("\nFROM "));
    const build = text.slice(0, -last.length);
    const copied = build.lastIndexOf("COPY source/ ./\nWORKDIR /app/services/api\n");
    expect(copied).toBeGreaterThan(0);
    expect(build.indexOf(step)).toBeGreaterThan(copied);
    expect(last).toMatch(/ \/app \/app\nWORKDIR \/app\/services\/api\n/);
  });

  it("is built alone where all that it names is in its folder", () => {
    const alone = (app: Files, root: Files) => below(app, root, "services/api");
    const work = { "go.work": "use ./services/other\nuse ./services/api/v2\n" };
    expect(alone(gin, work)).toMatchObject({ within: null });
    expect(alone({ ...gin, "vendor/modules.txt": "" }, { "go.work": "use ./services/api/" })).toMatchObject({
      within: null,
    });
    const scripts = { start: "node ../../server.js", dev: "cp ../../.env ." };
    expect(alone({ "package.json": JSON.stringify({ scripts }) }, {})).toMatchObject({ within: null });
  });

  it("of uv's workspace is installed by its lock file: what it needs of others first, then what is of the repository", () => {
    const member = {
      "pyproject.toml":
        '[build-system]\nname = "x"\n[project]\nname = "shop-api"\ndependencies = ["greeting"]\n',
      "main.py": "app = FastAPI()\n# uvicorn",
    };
    const root = {
      "pyproject.toml":
        '[project]\nname = "shop"\n[tool.uv.workspace]\nmembers = [\n  "libs/*", # shared\n  "services/*",\n]\nexclude = ["services/old"]\n[tool.x]\n',
      "uv.lock": "",
      ".python-version": "3.12\n",
    };
    const given = { ...member, Procfile: "web: uvicorn main:app\n" };
    const app = below(given, root, "services/api");
    expect(app).toMatchObject({ installer: "uv", version: "3.12", within: "services/api" });
    expect(generateDockerfile(app, variables)).toMatch(
      /COPY source\/pyproject\.toml source\/uv\.lock \.\/\n[^]*uv sync --frozen --no-dev --no-install-workspace --package shop-api"[^]*\nCOPY source\/ \.\/\nWORKDIR \/app\/services\/api\n[^]*uv sync --frozen --no-dev"[^]*WORKDIR \/app\/services\/api\nUSER/,
    );
    for (const folder of ["services/old", "tools/api"])
      expect(below(given, root, folder)).toMatchObject({ installer: "pyproject", within: null });
    expect(below({ ...given, "uv.lock": "" }, root, "services/api")).toMatchObject({ within: null });
    expect(() => plan({ ...root, "services/api/pyproject.toml": "" })).toThrow(
      /set rootDir to the folder of the app \(services\/api\)/,
    );
  });

  it.each([
    ["react-dev-utils", "node scripts/start.js"],
    ["@adonisjs/core", "node bin/server.js"],
  ])("is started by its own script where only the workspace's root lists %s", (name, script) => {
    const app = { "package.json": manifest("web", { scripts: { start: script } }) };
    const root = {
      "package.json": JSON.stringify({ workspaces: ["apps/*"], devDependencies: { [name]: "1" } }),
    };
    expect(below(app, root)).toMatchObject({ folder: "apps/web", startCommand: "npm start" });
  });

  it("is built by its owner's own command, or Turborepo's, alone", () => {
    const sources = {
      ...sourcesOf(web),
      workspace: workspaceOf(sourcesOf(web), sourcesOf(packages), "apps/web"),
    };
    expect(detect(sources, { ...none, buildCommand: "make" })).toMatchObject({ needed: [] });
    expect(below(web, { ...packages, ...turborepo })).toMatchObject({ needed: [] });
  });

  it("never names a folder that a Dockerfile would read as something else", () => {
    const names = ["a b", "$(id)", "a\nRUN id", "a;id", "ui"];
    const hostile = names.map((name) => [
      `packages/${name}/package.json`,
      manifest(name === "ui" ? "@shop/ui" : name, { scripts: { build: "tsc" } }),
    ]);
    const all = {
      "package.json": manifest("web", {
        ...start,
        dependencies: Object.fromEntries([...names, "@shop/ui"].map((name) => [name, "*"])),
      }),
    };
    const root = { ...packages, ...(Object.fromEntries(hostile) as Files) };
    expect(below(all, root)).toMatchObject({ needed: [{ folder: "packages/ui" }] });
  });

  it.each<[string, Files, Files, string]>([
    ["with a lock file of its own", { ...web, "package-lock.json": "" }, turborepo, "apps/web"],
    ["that the workspace does not name", web, turborepo, "examples/web"],
    ["that the workspace leaves out", web, turborepo, "packages/test/web"],
    [
      "of a repository without a workspace",
      web,
      { "package.json": "{}", "package-lock.json": "" },
      "apps/web",
    ],
  ])("%s is installed by itself", (_, app, root, folder) =>
    expect(below(app, root, folder)).toMatchObject({ folder: null }),
  );

  it("in another language has nothing to do with the workspace", () => {
    const python = { "requirements.txt": "flask", "app.py": "app = Flask(__name__)", ...web };
    const built = { ...python, "package.json": JSON.stringify({ scripts: { build: "vite build" } }) };
    expect(below(built, turborepo)).toMatchObject({ kind: "python", assets: { folder: null } });
  });
});

describe("a site that a framework builds", () => {
  it("in a package of a workspace whose root builds nothing is named", () => {
    const files = { "pnpm-workspace.yaml": "packages: [docs]\n", "docs/package.json": "{}" };
    expect(() => node({ devDependencies: { astro: "5" } }, files)).toThrow(
      "Found a workspace whose root builds nothing: set rootDir to the package to deploy (docs), or set buildCommand.",
    );
    expect(() => node({ devDependencies: { astro: "5" } })).toThrow(
      /no "build" script: add one, or set buildCommand\.$/,
    );
  });

  it.each([
    ["@sveltejs/kit", "@sveltejs/adapter-vercel", "Vercel", "@sveltejs/adapter-node"],
    ["@sveltejs/kit", "@sveltejs/adapter-cloudflare", "Cloudflare", "@sveltejs/adapter-node"],
    ["astro", "@astrojs/netlify", "Netlify", "@astrojs/node"],
  ])("of %s that %s leaves for another host says what builds it for any", (framework, adapter, host, any) => {
    const devDependencies = { [framework]: "2", [adapter]: "6" };
    const manifest = JSON.stringify({ scripts: { build: "vite build" }, devDependencies });
    expect(dockerfile({ "package.json": manifest })).toContain(
      `in none of: ${framework === "astro" ? "dist" : "build"}. ${adapter} builds for ${host}: use ${any} instead, which produces a server, or set outputDir if there are only files.`,
    );
    expect(
      node({ scripts: { build: "vite build" }, devDependencies: { ...devDependencies, [any]: "5" } }),
    ).toMatchObject({ kind: "node" });
  });

  it("of Vike without pages says what has it render them", () => {
    const vike = {
      scripts: { build: "vike build" },
      dependencies: { vike: "0.4" },
      devDependencies: { vite: "7" },
    };
    expect(node(vike)).toMatchObject({ kind: "site", outputs: ["dist/client"] });
    expect(dockerfile({ "package.json": JSON.stringify(vike) })).toContain(
      "in none of: dist/client. Vike renders pages while it builds only if prerender is true",
    );
  });

  it.each<[string, object, string[]]>([
    ["vite", { scripts: { build: "vite build" } }, ["dist"]],
    ["astro", { scripts: { start: "astro dev", build: "astro build" } }, ["dist"]],
    ["react-scripts", { scripts: { start: "react-scripts start", build: "react-scripts build" } }, ["build"]],
    ["@vue/cli-service", { scripts: { build: "vue-cli-service build" } }, ["dist"]],
    ["gatsby", { scripts: { start: "gatsby develop", build: "gatsby build" } }, ["public"]],
    [
      "gatsby",
      { scripts: { start: "npm run develop", develop: "gatsby develop", build: "gatsby build" } },
      ["public"],
    ],
    ["vite", { scripts: { start: "nx serve", build: "nx build" } }, ["dist"]],
    ["vite", { scripts: { start: "yarn dev", dev: "vite", build: "vite build" } }, ["dist"]],
    ["react-scripts", { scripts: { start: "PORT=80 npx craco start", build: "craco build" } }, ["build"]],
    ["@react-router/dev", { scripts: { build: "react-router build" } }, ["build/client"]],
    ["@docusaurus/core", { scripts: { start: "docusaurus start", build: "docusaurus build" } }, ["build"]],
    [
      "@stencil/core",
      { scripts: { start: "stencil build --dev --watch --serve", build: "stencil build" } },
      ["www"],
    ],
    ["@11ty/eleventy", { scripts: { start: "eleventy --serve", build: "eleventy" } }, ["_site"]],
    ["@11ty/eleventy", { scripts: { build: "eleventy --output=www" } }, ["www", "_site"]],
    [
      "parcel",
      { scripts: { start: "parcel index.html", build: "parcel build --dist-dir out" } },
      ["out", "dist"],
    ],
  ])("with %s is served from where it is built: %j", (dependency, manifest, outputs) =>
    expect(node({ ...manifest, devDependencies: { [dependency]: "1" } })).toMatchObject({
      kind: "site",
      outputs,
    }),
  );

  it("is looked for where the framework's configuration puts it, inside the repository", () => {
    const outputs = (text: string) => node(vite, { "vite.config.ts": text });
    expect(outputs('build: { outDir: "./www/" }')).toMatchObject({ outputs: ["www", "dist"] });
    for (const hostile of ["../../etc", "/etc", "a; id", "$(id)", "-rf", "."])
      expect(outputs(`outDir: "${hostile}"`)).toMatchObject({ outputs: ["dist"] });
  });

  it("is Next.js's, too, when it is exported", () => {
    const next = { scripts: { build: "next build", start: "next start" }, dependencies: { next: "15" } };
    expect(node(next)).toMatchObject({ kind: "node" });
    expect(node(next, { "next.config.js": 'module.exports = {\n  output: "export",\n}' })).toMatchObject({
      kind: "site",
      outputs: ["out"],
    });
  });

  it("is React Router's, too, when it renders nothing on the server", () => {
    const router = {
      scripts: { build: "react-router build", start: "react-router-serve ./build/server/index.js" },
      devDependencies: { "@react-router/dev": "7", vite: "7" },
    };
    expect(node(router, { "react-router.config.ts": "export default {\n  ssr: true,\n}" })).toMatchObject({
      kind: "node",
    });
    expect(node(router, { "react-router.config.ts": "export default {\n  ssr: false,\n}" })).toMatchObject({
      kind: "site",
      outputs: ["build/client"],
      singlePage: true,
    });
  });

  it("that no build would make is refused before it is built", () => {
    const vitepress = { scripts: { "docs:dev": "vitepress dev" }, devDependencies: { vitepress: "1" } };
    expect(() => node(vitepress)).toThrow(/set buildCommand/);
    expect(node(vitepress, {}, { buildCommand: "npx vitepress build" })).toMatchObject({ kind: "site" });
    const qwik = { ...vite, devDependencies: { "@builder.io/qwik-city": "1", vite: "7" } };
    expect(() => node(qwik)).toThrow(/npm run qwik add/);
    expect(node(qwik, { "adapters/": "" })).toMatchObject({ kind: "site" });
  });

  it.each([
    ["VitePress", "docs:build", "vitepress", "docs/.vitepress/dist"],
    ["VuePress", "docs:build", "vuepress", "docs/.vuepress/dist"],
    ["Storybook", "build-storybook", "storybook", "storybook-static"],
  ])("of %s is built by the script %s that its generator makes", (_, script, dependency, output) => {
    const manifest = { scripts: { [script]: "x" }, devDependencies: { [dependency]: "1" } };
    expect(node(manifest)).toMatchObject({ kind: "site", buildCommand: `npm run ${script}` });
    expect(node(manifest)).toMatchObject({ outputs: expect.arrayContaining([output]) });
    expect(node({ ...manifest, scripts: { ...vite.scripts, [script]: "x" } })).toMatchObject({
      buildCommand: "npm run build",
    });
  });

  it("is Nuxt's, too, when it is generated", () =>
    expect(node({ scripts: { build: "nuxt generate" }, dependencies: { nuxt: "4" } })).toMatchObject({
      kind: "site",
      outputs: [".output/public", "dist"],
    }));

  it("answers unknown paths with its page only when there is one page", () => {
    expect(node(vite, { "index.html": "" })).toMatchObject({ singlePage: true });
    expect(node(vite, { "index.html": "", "admin.html": "" })).toMatchObject({ singlePage: false });
    expect(node(vite, { "index.html": "", "public/404.html": "" })).toMatchObject({ singlePage: false });
    const astro = { scripts: vite.scripts, dependencies: { astro: "5", vite: "7" } };
    expect(node(astro, { "index.html": "" })).toMatchObject({ singlePage: false });
  });

  it("may be of no framework we know, when nothing is there to start", () => {
    expect(node({ scripts: { build: "node build.js" } })).toMatchObject({ kind: "site" });
    expect(node({ scripts: { build: "tsc" }, main: "dist/index.js" })).toMatchObject({
      kind: "node",
      startCommand: "node dist/index.js",
    });
  });

  it("is an app when it is given a start command", () => {
    expect(node(vite, {}, { startCommand: "node x.js" })).toMatchObject({ kind: "node" });
    expect(node(vite, { Procfile: "web: node x.js" })).toMatchObject({ startCommand: "node x.js" });
  });
});

describe("a Python app", () => {
  it.each<[string, Files, string]>([
    ["a Procfile", { ...django, Procfile: "release: x\nweb: ./serve\n" }, "./serve"],
    ["Django", django, "python manage.py runserver --noreload 0.0.0.0:$PORT"],
    [
      "Django and gunicorn",
      { ...django, "requirements.txt": "Django==5.0\ngunicorn>=22" },
      "gunicorn shop.wsgi --bind 0.0.0.0:$PORT",
    ],
    [
      "FastAPI",
      { "requirements.txt": "fastapi\nuvicorn[standard]", "app/main.py": "api = FastAPI(title='x')" },
      "uvicorn app.main:api --host 0.0.0.0 --port $PORT",
    ],
    [
      "FastAPI with its extras",
      {
        "pyproject.toml": '[project]\ndependencies = ["fastapi[standard]>=0.1"]',
        "main.py": "app = FastAPI()",
      },
      "uvicorn main:app --host 0.0.0.0 --port $PORT",
    ],
    [
      "Flask",
      { "requirements.txt": "flask", "app.py": "app = Flask(__name__)" },
      "flask --app app:app run --host 0.0.0.0 --port $PORT",
    ],
    [
      "Flask and gunicorn",
      { "pyproject.toml": "[tool.poetry.dependencies]\ngunicorn = '*'", "web.py": "site = Flask(__name__)" },
      "gunicorn web:site --bind 0.0.0.0:$PORT",
    ],
    [
      "FastAPI that a function makes",
      {
        "requirements.txt": "fastapi\nuvicorn\n",
        "main.py": "from shop import create_app\napp = create_app()\n",
        "shop/__init__.py": "def create_app():\n    app = FastAPI()\n",
      },
      "uvicorn main:app --host 0.0.0.0 --port $PORT",
    ],
    [
      "FastAPI below src/",
      { "requirements.txt": "fastapi[standard]", "src/shop/main.py": "app = FastAPI()" },
      "uvicorn shop.main:app --host 0.0.0.0 --port $PORT",
    ],
    [
      "Django and Waitress",
      { ...django, "requirements.txt": "Django\nwaitress" },
      "waitress-serve --port=$PORT shop.wsgi:application",
    ],
    [
      "Django with Channels",
      { ...django, "shop/asgi.py": "", "requirements.txt": "channels[daphne]\ngunicorn" },
      "daphne --bind 0.0.0.0 --port $PORT shop.asgi:application",
    ],
    [
      "Django and Uvicorn",
      { ...django, "shop/asgi.py": "", "requirements.txt": "Django\nuvicorn" },
      "uvicorn shop.asgi:application --host 0.0.0.0 --port $PORT",
    ],
    [
      "Django without a server of its own",
      { ...django, "requirements.txt": "Django\nuvicorn" },
      "python manage.py runserver --noreload 0.0.0.0:$PORT",
    ],
    [
      "Flask and Waitress",
      { "requirements.txt": "flask\nwaitress", "app.py": "app = Flask(__name__)" },
      "waitress-serve --port=$PORT app:app",
    ],
    [
      "Flask made by a function and Waitress",
      { "requirements.txt": "flask\nwaitress", "shop/__init__.py": "def create_app():" },
      "waitress-serve --port=$PORT --call shop:create_app",
    ],
    [
      "Flask with a manage.py of its own",
      {
        "requirements.txt": "flask\ngunicorn",
        "manage.py": "from flask.cli import FlaskGroup\n",
        "shop/__init__.py": "app = Flask(__name__)\n",
      },
      "gunicorn shop:app --bind 0.0.0.0:$PORT",
    ],
    [
      "Flask whose function is given what it needs",
      {
        "requirements.txt": "flask\ngunicorn",
        "conftest.py": "app = create_app('test')\n",
        "shop.py": "from web import create_app\napp = create_app(os.getenv('CONFIG'))\n",
        "web/__init__.py": "def create_app(config):\n    app = Flask(__name__)\n",
      },
      "gunicorn shop:app --bind 0.0.0.0:$PORT",
    ],
    [
      "Flask whose function needs nothing beside scripts that call it",
      {
        "requirements.txt": "flask\ngunicorn",
        "create_db.py": "app = create_app()\nwith app.app_context():\n    db.drop_all()\n",
        "main.py": "app = create_app()\napp.run()\n",
        "shop/__init__.py": "def create_app() -> Flask:\n    app = Flask(__name__)\n",
      },
      "gunicorn 'shop:create_app()' --bind 0.0.0.0:$PORT",
    ],
    [
      "Flask whose function may be given something beside a script that calls it",
      {
        "requirements.txt": "flask\ngunicorn",
        "create_db.py": "app = create_app()\ndb.create_all()\n",
        "run.py": "app = create_app('production')\nif __name__ == '__main__':\n    app.run()\n",
        "shop/__init__.py": "def create_app(config: dict[str, str] = {}):\n",
      },
      "gunicorn run:app --bind 0.0.0.0:$PORT",
    ],
    [
      "Flask whose function is given what it needs by scripts, too",
      {
        "requirements.txt": "flask\ngunicorn",
        "create_db.py": "app = create_app('production')\ndb.drop_all()\n",
        "create_users.py": "app = create_app('production')\n",
        "main.py": "app = create_app('production')\napp.run()\n",
        "run.py": "app = create_app('production')\n",
        "shop/__init__.py": "def create_app(config: str, debug=False):\n",
      },
      "gunicorn run:app --bind 0.0.0.0:$PORT",
    ],
    [
      "Flask whose function is called only by scripts",
      {
        "requirements.txt": "flask\ngunicorn",
        "app.py": "app = create_app()\napp.run()\n",
        "seed_db.py": "app = create_app()\n",
        "shop/__init__.py": "def create_app(config=None):\n",
      },
      "gunicorn 'shop:create_app()' --bind 0.0.0.0:$PORT",
    ],
    [
      "FastAPI and Hypercorn",
      { "requirements.txt": "fastapi\nhypercorn", "main.py": "app = FastAPI()" },
      "hypercorn main:app --bind 0.0.0.0:$PORT",
    ],
    [
      "Starlette and Daphne",
      { "requirements.txt": "starlette\ndaphne", "main.py": "app = Starlette()" },
      "daphne --bind 0.0.0.0 --port $PORT main:app",
    ],
    [
      "FastAPI and Granian",
      { "requirements.txt": "fastapi\ngranian", "main.py": "app = FastAPI()" },
      "granian --interface asgi --host 0.0.0.0 --port $PORT main:app",
    ],
    [
      "Litestar with its extras",
      { "requirements.txt": "litestar[standard]", "app.py": "app = Litestar([index])" },
      "uvicorn app:app --host 0.0.0.0 --port $PORT",
    ],
    [
      "Quart, which brings its server",
      {
        "requirements.txt": "quart",
        "app.py": 'app = Quart(__name__)\nif __name__ == "__main__":\n    app.run()',
      },
      "hypercorn app:app --bind 0.0.0.0:$PORT",
    ],
    [
      "Sanic",
      { "requirements.txt": "sanic", "server.py": 'app = Sanic("Shop")' },
      "sanic server:app --host 0.0.0.0 --port $PORT",
    ],
    [
      "FastAPI with examples",
      {
        "requirements.txt": "fastapi\nuvicorn",
        "examples/demo.py": "app = FastAPI()\n",
        "shop/api.py": "app = FastAPI()\n",
      },
      "uvicorn shop.api:app --host 0.0.0.0 --port $PORT",
    ],
    [
      "Django in a folder",
      {
        "requirements.txt": "Django\ngunicorn\n",
        "site/manage.py": django["manage.py"],
        "site/shop/wsgi.py": "",
      },
      "cd site && gunicorn shop.wsgi --bind 0.0.0.0:$PORT",
    ],
    [
      "Streamlit",
      { "requirements.txt": "streamlit\n", "app.py": "import streamlit as st" },
      "streamlit run --server.address 0.0.0.0 --server.port $PORT --server.headless true app.py",
    ],
    [
      "Streamlit with pages",
      {
        "requirements.txt": "streamlit\n",
        "Home.py": "",
        "pages/1_A.py": "",
        "plots.py": "import streamlit",
      },
      "streamlit run --server.address 0.0.0.0 --server.port $PORT --server.headless true Home.py",
    ],
    [
      "Streamlit in its only script",
      { "requirements.txt": "streamlit\n", "my-board.py": "# a\nfrom streamlit import title", "load.py": "" },
      "streamlit run --server.address 0.0.0.0 --server.port $PORT --server.headless true my-board.py",
    ],
    [
      "Gradio",
      { "requirements.txt": "gradio\n", "app.py": "demo.launch()" },
      "env GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=$PORT python app.py",
    ],
    ["Dash", { "requirements.txt": "dash==3\n", "app.py": "" }, "env HOST=0.0.0.0 python app.py"],
    ["one file", { "main.py": "" }, "python main.py"],
  ])("of %s is started as such ones are", (_, files, startCommand) =>
    expect(plan(files)).toMatchObject({ kind: "python", startCommand }),
  );

  it("of Streamlit is not guessed among several scripts", () => {
    const script = "import streamlit as st";
    expect(() => plan({ "requirements.txt": "streamlit", "a.py": script, "b.py": script })).toThrow(
      /set startCommand/,
    );
  });

  it.each<[Files, string | null]>([
    [{ "uv.lock": "", "pyproject.toml": "[project]", "requirements.txt": "" }, "uv"],
    [{ "poetry.lock": "", "pyproject.toml": "", "requirements.txt": "" }, "poetry"],
    [{ "requirements.txt": "", Pipfile: "" }, "pip"],
    [{ Pipfile: "" }, "pipenv"],
    [{ "pyproject.toml": "[project]\nname = 'x'" }, "pyproject"],
    [{ "pyproject.toml": "[project]\nname = 'x'\n[tool.poetry]\npackage-mode = false" }, "poetry"],
    [{ "pyproject.toml": "[project]\nname = 'x'\n[tool.poetry]\npackages = []" }, "pyproject"],
    [{ "setup.py": "setup()", "pyproject.toml": "[tool.black]" }, "setup"],
    [{ "setup.py": "setup()", "requirements.txt": "" }, "pip"],
    [{ Pipfile: "", "requirements/base.txt": "" }, "pipenv"],
    [{ "pyproject.toml": "[project]", "requirements/base.txt": "" }, "pyproject"],
    [{ "pyproject.toml": "[tool.ruff]", "requirements/base.txt": "" }, "pip"],
    [{ "pyproject.toml": "[tool.ruff]" }, null],
  ])("is installed by what its files are of: %j", (files, installer) =>
    expect(plan({ ...files, "main.py": "" })).toMatchObject({ installer }),
  );

  it("of setup.py alone is installed as a package, with what that requires", () => {
    const setup = 'setup(\n    install_requires=[\n        "flask",\n        "gunicorn>=22",\n    ],\n)\n';
    const files = { "setup.py": setup, "shop/__init__.py": "app = Flask(__name__)\n" };
    expect(plan(files)).toMatchObject({ startCommand: "gunicorn shop:app --bind 0.0.0.0:$PORT" });
    expect(dockerfile(files)).toMatch(/COPY source\/ \.\/\n[^]*pip install \."/);
    expect(
      plan({ ...files, "setup.py": "setup()", "setup.cfg": "[options]\ninstall_requires =\n  gunicorn\n" }),
    ).toMatchObject({
      startCommand: "gunicorn shop:app --bind 0.0.0.0:$PORT",
    });
    // Its extras are not installed by requirements.txt.
    expect(plan({ ...files, "requirements.txt": "flask" })).toMatchObject({
      startCommand: "flask --app shop:app run --host 0.0.0.0 --port $PORT",
    });
  });

  it("without requirements.txt is installed by production's file in requirements/, otherwise by the one for all", () => {
    const files: Files = {
      ...django,
      "requirements/base.txt": "Django\ngunicorn\n",
      "requirements/dev.txt": "waitress\n",
    };
    expect(plan(files)).toMatchObject({
      installer: "pip",
      startCommand: "gunicorn shop.wsgi --bind 0.0.0.0:$PORT",
    });
    const text = dockerfile({ ...files, "requirements/production.txt": "-r base.txt\nwhitenoise\n" });
    expect(text).toContain(
      "COPY source/requirements/production.txt source/requirements/base.txt ./requirements/\n",
    );
    expect(text).toContain("pip install -r requirements/production.txt");
    expect(text).toContain("collectstatic");
    expect(dockerfile({ ...files, "requirements/prod.txt": "-e ." })).toContain(
      "pip install -r requirements/prod.txt",
    );
    expect(dockerfile({ ...files, "requirements.txt": "Django" })).toContain(
      "pip install -r requirements.txt",
    );
  });

  it("of a conda environment is not started without its packages", () => {
    const files = { "app.py": "app = Flask(__name__)", "environment.yml": "dependencies:\n  - flask\n" };
    const told = /^Found environment\.yml: .*conda.* a Dockerfile.* requirements\.txt/;
    expect(() => plan(files)).toThrow(told);
    expect(() => plan({ "environment.yml": "", "README.md": "" })).toThrow(told);
    expect(plan({ ...files, "requirements.txt": "flask" })).toMatchObject({ installer: "pip" });
    expect(plan(files, { installCommand: "pip install flask" })).toMatchObject({ kind: "python" });
  });

  it("says which version it needs, if it does", () => {
    expect(plan({ "main.py": "", ".python-version": "3.12.1\n" })).toMatchObject({ version: "3.12" });
    expect(plan({ "main.py": "", "runtime.txt": "python-3.11.4" })).toMatchObject({ version: "3.11" });
    expect(plan({ "main.py": "", ".python-version": "3.12;id" })).toMatchObject({ version: null });
    const uv = { "main.py": "", "pyproject.toml": "[project]", "uv.lock": "", ".python-version": "3.12.4\n" };
    expect(plan(uv)).toMatchObject({ version: "3.12.4" });
    const pipfile = '[requires]\npython_version = "3.11"\n';
    expect(plan({ "main.py": "", Pipfile: pipfile })).toMatchObject({ version: "3.11" });
  });

  it.each([
    [">=3.9", null],
    [">=3.9,<4.0", null],
    ["^3.11", null],
    [">=3.14", "3.14"],
    [">=3.14,<4.0", "3.14"],
    [">=3.9, <3.13", "3.12"],
    [">=3.9,<=3.12", "3.12"],
    ["<3.13.0,>=3.10", "3.12"],
    ["==3.11.*", "3.11"],
    ["~3.10", "3.10"],
    ["3.10;id", null],
  ])("is built with the newest version that its pyproject.toml allows: %s", (range, version) => {
    const project = { "main.py": "", "pyproject.toml": `[project]\nrequires-python = "${range}"\n` };
    expect(plan(project)).toMatchObject({ version });
    const poetry = { "main.py": "", "pyproject.toml": `[tool.poetry.dependencies]\npython = "${range}"\n` };
    expect(plan(poetry)).toMatchObject({ version });
  });

  it("that asks for none is not built with Python's newest version, for which packages may not be made yet", () =>
    expect(dockerfile({ "main.py": "" })).toContain("FROM python:3.13-slim-bookworm\n"));

  it("whose dependencies its own build computes is installed with them, and by itself otherwise", () => {
    const installs = (more: string) => {
      const project = `[project]\nname = "a"\n${more}\n[build-system]\nrequires = []\n`;
      return generateDockerfile(plan({ "main.py": "", "pyproject.toml": project }), variables);
    };
    expect(installs('dynamic = ["version", "dependencies"]')).toContain(' pip install ."');
    expect(installs('dynamic = ["version"]')).toContain(' pip install --no-deps ."');
    expect(installs("dynamic = 1")).toContain(' pip install --no-deps ."');
  });

  it("whose pyproject.toml or Pipfile names folders of the repository has them when they are installed", () => {
    const uv = (text: string) =>
      plan({ "main.py": "", "uv.lock": "", "pyproject.toml": `[project]\n${text}` });
    expect(uv("[tool.uv.sources]\nshared = { workspace = true }")).toMatchObject({ needsSource: true });
    expect(uv('[tool.uv.sources]\nshared = { path = "shared" }')).toMatchObject({ needsSource: true });
    expect(uv('dependencies = ["flask"]')).toMatchObject({ needsSource: false });
    const pipfile = '[packages]\nshared = {path = "./shared", editable = true}\n';
    expect(plan({ "main.py": "", Pipfile: pipfile })).toMatchObject({ needsSource: true });
  });

  it("whose requirements name files of the repository has them when they are installed", () => {
    for (const line of [
      "-r base.txt",
      "-c ../a.txt",
      "-e .",
      "--find-links wheels",
      "./a.whl",
      "x @ file:./x",
    ])
      expect(plan({ "main.py": "", "requirements.txt": `flask\n${line}\n` })).toMatchObject({
        needsSource: true,
      });
    expect(plan({ "main.py": "", "requirements.txt": "flask==3.0 # -r\nrequests" })).toMatchObject({
      needsSource: false,
    });
  });

  it("is what the files say that requirements.txt includes, and is installed again only when one of them changes", () => {
    const files = {
      ...django,
      "requirements.txt": "-r requirements/production.txt\n",
      "requirements/production.txt":
        "--requirement=base.txt\n-c ../constraints.txt\ngunicorn\nwhitenoise\npsycopg2\n",
      "requirements/base.txt": "-r production.txt\nDjango\n",
      "constraints.txt": "Django<6\n",
    };
    expect(plan(files)).toMatchObject({
      startCommand: "gunicorn shop.wsgi --bind 0.0.0.0:$PORT",
      buildCommand: "python manage.py collectstatic --noinput",
      packages: { run: ["libpq5"] },
      needsSource: false,
    });
    expect(dockerfile(files)).toContain(
      "\nCOPY source/requirements.txt source/constraints.txt ./\nCOPY source/requirements/production.txt source/requirements/base.txt ./requirements/\n",
    );
    expect(frameworkOf(sourcesOf(files), "python")).toBe("Django");
  });
});

describe("the framework that a repository is said to be made with", () => {
  const vite = '{"scripts":{"build":"vite build"},"devDependencies":{"vite":"7"}}';
  it.each<[string, string, Files]>([
    ["that of the app", "Laravel", { ...laravel, "package.json": vite }],
    ["that of the app", "Django", { ...django, "requirements.txt": "Django\n", "package.json": vite }],
    ["that of the app", "Rails", { ...rails, "package.json": vite }],
    ["that of npm's packages", "Vite", { "package.json": vite, "requirements.txt": "flask\n" }],
    [
      "none that a script has the name of",
      "Express",
      { "package.json": '{"scripts":{"start":"node .","next":"node next"},"dependencies":{"express":"5"}}' },
    ],
  ])("is %s, not of its tools: %s where both are there", (_, framework, files) =>
    expect(frameworkOf(sourcesOf(files), plan(files).kind)).toBe(framework),
  );
});

describe("a Go app", () => {
  it("is the program at the root, or the only one of cmd/", () => {
    expect(plan(gin)).toMatchObject({ kind: "go", main: "./" });
    expect(
      plan({ "go.mod": "", "lib.go": "package lib\n", "cmd/web/main.go": "package main\n" }),
    ).toMatchObject({ main: "./cmd/web" });
  });

  it.each([
    ["go run main.go", "main.go", ""],
    ["go run .", ".", ""],
    ["exec go run ./cmd/web -listen :$PORT", "./cmd/web", " -listen :$PORT"],
    ["go run main.go routes.go serve", "main.go routes.go", " serve"],
  ])("that is started by %s is built beforehand, as the image has no compiler", (web, main, args) => {
    const files = { ...gin, "cmd/web/main.go": "package main\n", Procfile: `web: ${web}\n` };
    expect(plan(files)).toMatchObject({ main, startCommand: `/usr/local/bin/app${args}` });
  });

  it.each([
    ["go-getting-started", "/usr/local/bin/go-getting-started"],
    ["PORT=80 exec go-getting-started -v", "/usr/local/bin/go-getting-started"],
    ["bin/web -port=$PORT", "/app/bin/web"],
    ["GIN_MODE=release ./server", "/app/server"],
    ["bin/start", "/usr/local/bin/app"],
    ["./static", "/usr/local/bin/app"],
    ["sh -c app", "/usr/local/bin/app"],
    ["/usr/local/bin/app serve", "/usr/local/bin/app"],
    ["../../bin/web", "/usr/local/bin/app"],
  ])("that is started by %s is built to where that is", (web, program) => {
    const module = "// of Heroku\nmodule github.com/heroku/go-getting-started/v2\n";
    const files = { ...gin, "go.mod": module, "bin/start": "", "static/a": "", Procfile: `web: ${web}\n` };
    const text = dockerfile(files);
    expect(text).toContain(`-o ${program} ./"`);
    expect(text).toContain(`CMD ["sh","-c","${web.startsWith("PORT=") ? "" : "exec "}`);
    expect(text.includes(`COPY --from=build ${program} ${program}`)).toBe(!program.startsWith("/app/"));
  });

  it("with several programs is the one that its Procfile starts", () => {
    const main = "package main\n";
    const cmd = { "cmd/web/main.go": main, "cmd/worker/main.go": main };
    for (const web of ["web", "bin/web", "exec ./web"]) {
      expect(plan({ "go.mod": "module shop", ...cmd, Procfile: `web: ${web}\n` })).toMatchObject({
        main: "./cmd/web",
      });
      expect(
        plan({ "go.mod": "module web", "main.go": main, ...cmd, Procfile: `web: ${web}\n` }),
      ).toMatchObject({ main: "./" });
    }
  });

  it("may lie in cmd/ itself or in the only folder with a main.go", () => {
    const main = "package main\n";
    expect(plan({ "go.mod": "", "cmd/main.go": main })).toMatchObject({ main: "./cmd" });
    expect(plan({ "go.mod": "", "server/main.go": main })).toMatchObject({ main: "./server" });
    const tools = { "tools/main.go": main, "cmd/web/main.go": main };
    expect(plan({ "go.mod": "", ...tools })).toMatchObject({ main: "./cmd/web" });
  });

  it.each([
    "//go:build mage",
    "// +build ignore",
    "//go:build wasm || js",
    "// A copyright.\n\n//go:build windows && amd64x",
  ])("has no program in a file that its build leaves out: %s", (constraint) => {
    const other = `${constraint}\n\npackage main\n`;
    const files = { "go.mod": "", "magefile.go": other, "cmd/web/main.go": "package main\n" };
    expect(plan(files)).toMatchObject({ main: "./cmd/web" });
  });

  it.each(["//go:build linux || darwin", "//go:build !windows", "// +build amd64", "//go:build go1.21"])(
    "has its program in a file that its build takes: %s",
    (constraint) =>
      expect(
        plan({
          "go.mod": "",
          "cmd/web/main.go": "package main\n",
          "main.go": `${constraint}\n\npackage main\n`,
        }),
      ).toMatchObject({
        main: "./",
      }),
  );

  it.each(["main_windows.go", "main_darwin_arm64.go", "main_js.go", "main_wasm.go", "a_wasip1_wasm.go"])(
    "has no program in a file that its build leaves out by its name: %s",
    (file) => {
      const main = "package main\n";
      expect(plan({ "go.mod": "", [file]: main, "cmd/web/main.go": main })).toMatchObject({
        main: "./cmd/web",
      });
      expect(plan({ "go.mod": "", [file]: main, "server/main.go": main })).toMatchObject({
        main: "./server",
      });
    },
  );

  it("has its program in a file whose name only looks like that of another system", () => {
    for (const file of ["windows.go", "main_unix.go", "main_windows_service.go"])
      expect(
        plan({ "go.mod": "", [file]: "package main\n", "cmd/web/main.go": "package main\n" }),
      ).toMatchObject({ main: "./" });
  });

  it("has its program behind a tag of its own, which GOFLAGS may set, where no other is usual", () => {
    const head = (constraint: string) => `//go:build ${constraint}\n\npackage main\n`;
    const tool = { "go.mod": "", "tools/gen/main.go": "package main\n" };
    expect(plan({ ...tool, "main.go": head("production") })).toMatchObject({ main: "./" });
    expect(plan({ ...tool, "cmd/web/main.go": head("server && sqlite") })).toMatchObject({
      main: "./cmd/web",
    });
    expect(plan({ "go.mod": "", "server/main.go": head("production") })).toMatchObject({ main: "./server" });
    expect(plan({ ...tool, "server/main.go": head("production") })).toMatchObject({ main: "./tools/gen" });
    for (const constraint of ["ignore", "mage", "generate", "js && wasm", "windows"])
      expect(plan({ ...tool, "main.go": head(constraint) })).toMatchObject({ main: "./tools/gen" });
    const web = { "cmd/web/main.go": "package main\n" };
    expect(plan({ ...tool, ...web, "main.go": head("production") })).toMatchObject({ main: "./cmd/web" });
  });

  it("has its program in a file that writes constraints of its own", () =>
    expect(
      plan({ "go.mod": "", "main.go": "package main\n\nconst head = `\n//go:build mage\n`\n" }),
    ).toMatchObject({
      main: "./",
    }));

  it("with a module that is made of C is built with C, as it would fail when it starts", () => {
    const sqlite = "module a\nrequire github.com/mattn/go-sqlite3 v1.14.24 // indirect\n";
    expect(dockerfile({ ...gin, "go.mod": sqlite })).toContain("CGO_ENABLED=1");
  });

  it("with several programs, or none, says what to set", () => {
    const cmd = { "cmd/a/main.go": "package main\n", "cmd/b/main.go": "package main\n" };
    expect(() => plan({ "go.mod": "", ...cmd })).toThrow(
      /more than one program \(\.\/cmd\/a, \.\/cmd\/b\).*go build -o app \.\/cmd\/a/,
    );
    expect(() => plan({ "go.mod": "", "lib.go": "package lib\n" })).toThrow(/no program/);
    expect(() => plan({ "go.mod": "", ...cmd }, { buildCommand: "go build" })).toThrow(/startCommand/);
  });

  it("is one static program, built from vendor/ where that is there", () => {
    // The official image sets GOTOOLCHAIN=local: a go.mod that is newer than the image would be refused.
    expect(dockerfile(gin)).toMatch(
      /GOTOOLCHAIN=auto CGO_ENABLED=0\n[^]*go mod download[^]*COPY source\/ \.\//,
    );
    const vendored = dockerfile({ ...gin, "vendor/modules.txt": "" });
    expect(vendored).toContain("GOFLAGS=-mod=vendor");
    expect(vendored).not.toContain("go mod download");
  });
});

describe("a PHP app", () => {
  it("is served from public/ where its page lies there", () => {
    expect(plan(laravel)).toMatchObject({
      startCommand: "serve-php public",
      composer: "install",
    });
    expect(plan({ "index.php": "" })).toMatchObject({
      startCommand: "serve-php .",
      composer: null,
    });
  });

  it("is served from htdocs/ where its page lies there", () =>
    expect(plan({ "htdocs/index.php": "", "composer.json": "{}" })).toMatchObject({
      startCommand: "serve-php htdocs",
    }));

  it("of Nette is served from www/, where its page lies, and has its assets made by Vite", () =>
    expect(
      plan({
        "www/index.php": "",
        "composer.json": '{"require":{"nette/application":"^3"}}',
        "package.json": JSON.stringify(vite),
      }),
    ).toMatchObject({
      kind: "php",
      startCommand: "serve-php www",
      assets: { buildCommand: "npm run build" },
    }));

  it("is served from web/ or where Heroku's server, which is not here, is told to serve it from", () => {
    const served = (files: Files) =>
      (plan({ "composer.json": "{}", ...files }) as { startCommand: string }).startCommand;
    expect(served({ "web/index.php": "" })).toBe("serve-php web");
    expect(served({ Procfile: "web: vendor/bin/heroku-php-apache2 docs/\n" })).toBe("serve-php docs");
    expect(served({ ...laravel, Procfile: "web: heroku-php-nginx -C nginx.conf\n" })).toBe("serve-php .");
    expect(served({ ...laravel, Procfile: "web: heroku-php-nginx $(id)\n" })).toBe("serve-php .");
    expect(served({ ...laravel, Procfile: "web: php artisan octane:start\n" })).toBe(
      "php artisan octane:start",
    );
  });

  it("of Drupal has the page that its plugin of Composer's makes, where that makes it", () => {
    const scaffold = "drupal/core-composer-scaffold";
    const drupal = (more: object) => ({
      "composer.json": JSON.stringify({ require: { [scaffold]: "^11" }, ...more }),
    });
    const at = (folder: string) => ({ extra: { "drupal-scaffold": { locations: { "web-root": folder } } } });
    expect(dockerfile(drupal(at("web/")))).toMatch(
      /composer dump-autoload [^]*"composer drupal:scaffold --no-interaction"[^]*serve-php web"/,
    );
    expect(plan(drupal(at("docroot")))).toMatchObject({ startCommand: "serve-php docroot" });
    expect(plan(drupal({}))).toMatchObject({ startCommand: "serve-php ." });
    expect(plan(drupal(at("$(id)")))).toMatchObject({ startCommand: "serve-php ." });
    const refused = { config: { "allow-plugins": { [scaffold]: false } } };
    expect(dockerfile({ "index.php": "", ...drupal(refused) })).not.toContain("drupal:scaffold");
  });

  it("whose composer.json names folders of the repository has them when they are installed", () => {
    const path = { type: "path", url: "packages/*" };
    for (const repositories of [[path], { packages: path }, [{ "packagist.org": false }, path]]) {
      const composer = JSON.stringify({ require: { "shop/greeting": "*" }, repositories });
      expect(dockerfile({ "index.php": "", "composer.json": composer })).toMatch(
        /\nCOPY source\/ \.\/\nARG API_URL\nRUN .*composer install/,
      );
    }
  });

  it("asks Composer for packages only, not for PHP and its extensions", () => {
    const composer = JSON.stringify({ require: { php: "^8", "ext-json": "*" } });
    expect(dockerfile({ "index.php": "", "composer.json": composer })).not.toContain("composer install");
    expect(dockerfile(laravel)).toMatch(
      /COPY source\/composer\.json source\/composer\.lock \.\/\nARG API_URL\nRUN .*composer install/,
    );
  });

  it("speaks to the databases of a host, though no framework requires the drivers", () =>
    expect(dockerfile({ "index.php": "" })).toMatch(
      /libpq-dev[^]*docker-php-ext-install mysqli pdo_mysql pdo_pgsql"[^]*for name in redis; do [^\n]*pecl install/,
    ));

  it("has the extensions that composer.json or its packages require and the image lacks", () => {
    const require = { "ext-soap": "*", "ext-json": "*", "ext-$(id)": "*", "filament/filament": "4" };
    const packages = [
      { name: "filament/support", require: { "ext-intl": "*" }, suggest: { "ext-bcmath": "" } },
    ];
    const text = dockerfile({
      "index.php": "",
      "composer.json": JSON.stringify({ require }),
      "composer.lock": JSON.stringify({ packages, "packages-dev": [{ require: { "ext-gmp": "*" } }] }),
    });
    expect(text).toMatch(
      /docker-php-ext-install mysqli pdo_mysql pdo_pgsql"[^]*docker-php-ext-install intl soap"/,
    );
    expect(text).not.toContain("$(id)");
  });

  it("says in its Dockerfile which extension it requires and does not get", () => {
    const require = {
      "ext-swoole": "*",
      "ext-json": "*",
      "ext-PDO": "*",
      "ext-constructor": "*",
      "ext-redis": "*",
      "ext-imagick": "*",
    };
    const text = dockerfile({ "index.php": "", "composer.json": JSON.stringify({ require }) });
    expect(text).toContain("\n# composer.json requires ext-swoole, which is not installed here.\n");
    expect(text).toContain("ext-constructor");
    expect(text).not.toMatch(/ext-(json|pdo|redis|imagick)\b/);
    expect(text).toMatch(/libmagickwand-dev[^]*for name in imagick; do [^\n]*pecl install/);
  });

  it("of Symfony is in production, whatever its .env says, and has its assets where it maps them", () => {
    const require = { "symfony/framework-bundle": "7.3.*", "symfony/asset-mapper": "7.3.*" };
    const files = { "public/index.php": "", "composer.json": JSON.stringify({ require }) };
    expect(dockerfile(files)).toMatch(/ENV PHP_INI_SCAN_DIR=\S+ APP_ENV=prod\n/);
    expect(plan(files)).toMatchObject({
      buildCommand: "php bin/console importmap:install && php bin/console asset-map:compile",
    });
    expect(plan(files, { buildCommand: "make" })).toMatchObject({ buildCommand: "make" });
    expect(dockerfile(laravel)).not.toContain("APP_ENV");
  });

  it("has what Composer's scripts make by PHP, but for caches that it makes itself, and is not put in development", () => {
    const scripts = {
      "auto-scripts": {
        "cache:clear": "symfony-cmd",
        "assets:install %PUBLIC_DIR%": "symfony-cmd",
        "sass:build": "symfony-cmd",
        "npm run x": "script",
      },
      "post-install-cmd": ["@auto-scripts", "@php bin/console cache:warmup"],
      "post-autoload-dump": [
        "Illuminate\\Foundation\\ComposerScripts::postAutoloadDump",
        "@php artisan package:discover --ansi",
        "@php artisan config:cache",
        "@php -r \"copy('.env.example', '.env');\"",
        "@php artisan filament:upgrade",
        "@post-autoload-dump",
      ],
      "post-update-cmd": "@php artisan never",
    };
    const require = { "symfony/asset-mapper": "7", "symfonycasts/sass-bundle": "0.8" };
    const app = (composer: object) =>
      plan({ "web/index.php": "", "composer.json": JSON.stringify(composer) });
    expect(app({ require, scripts, extra: { "public-dir": "web/" } })).toMatchObject({
      buildCommand:
        "php artisan filament:upgrade && php bin/console assets:install web && php bin/console importmap:install && php bin/console sass:build && php bin/console asset-map:compile",
    });
    expect(app({ require: { "a/b": "1" }, scripts: { "post-install-cmd": "@php x.php" } })).toMatchObject({
      buildCommand: "php x.php",
    });
    for (const odd of [
      null,
      "x",
      [1],
      { "post-install-cmd": { a: 1 } },
      { "post-install-cmd": [null, "php x"] },
    ])
      expect(app({ require: { "a/b": "1" }, scripts: odd })).toMatchObject({ buildCommand: null });
  });

  it("has its assets made of what Composer installed, too", () => {
    const assets = { "package.json": JSON.stringify(vite), "package-lock.json": "" };
    expect(dockerfile({ ...laravel, ...assets })).toMatch(
      /AS packages\n[^]*composer install[^]*AS assets\n[^]*COPY --from=packages \/app\/ \.\/\n[^]*npm run build[^]*COPY --from=assets \/app\/ \.\//,
    );
  });

  it.each([
    [
      "with Wayfinder, which asks artisan",
      { devDependencies: { "@laravel/vite-plugin-wayfinder": "0.1", vite: "7" } },
    ],
    ["by a script of PHP's", { scripts: { build: "php artisan ziggy:generate && vite build" } }],
    [
      "by Composer's",
      { scripts: { build: "npm run ziggy && vite build", ziggy: "php artisan ziggy:generate" } },
    ],
  ])("whose assets are built %s has PHP and Node in one build, and no Node where it runs", (_, more) => {
    const assets = { "package.json": JSON.stringify({ ...vite, ...more }), "package-lock.json": "" };
    const text = dockerfile({ ...laravel, ...assets });
    expect(text).toMatch(
      /^FROM node:24-bookworm-slim AS node\n[^]*^FROM php AS assets\nCOPY --from=node \/usr\/local \/usr\/local\n[^]*^COPY --from=packages \/app\/ \.\/\n[^]*npm run build[^]*^FROM php\n[^]*^COPY --from=build/m,
    );
    expect(text.slice(text.lastIndexOf("FROM "))).not.toContain("node");
  });

  it.each([
    ["^8.2", null],
    [">=8.1", null],
    ["~8.3.0", "8.3"],
    ["8.2.*", "8.2"],
    [">=8.1 <8.5", "8.4"],
    ["~8.1.0 || ~8.2.0", "8.2"],
  ])("runs on the newest PHP that composer.json allows: %s", async (php, version) => {
    const app = plan({ ...laravel, "composer.json": JSON.stringify({ require: { php, "a/b": "1" } }) });
    const { images } = await chooseBaseImages(app, () => Promise.resolve(true));
    expect(images.php).toBe(version === null ? "php:8-apache" : `php:${version}-apache`);
    // Composer's own may be newer than that.
    expect(generateDockerfile(app, variables)).toMatch(/composer install .*--ignore-platform-req=php\+/);
  });

  it("runs on the PHP that Composer was told of", () => {
    const platform = { require: { php: "^8.1" }, config: { platform: { php: "8.2.14" } } };
    expect(plan({ ...laravel, "composer.json": JSON.stringify(platform) })).toMatchObject({ version: "8.2" });
  });

  it("with gd reads more than PNG, as it was compiled for", () => {
    const require = { "ext-gd": "*", "ext-zip": "*" };
    expect(dockerfile({ "index.php": "", "composer.json": JSON.stringify({ require }) })).toMatch(
      /libjpeg62-turbo-dev[^]*docker-php-ext-configure gd --with-freetype --with-jpeg[^]*docker-php-ext-install gd [^"]*zip"/,
    );
  });

  it("logs its errors and shows visitors none, also where the image has no php.ini", () =>
    expect(dockerfile(laravel)).toMatch(
      /FROM php:8-apache AS php\n.*'display_errors=0' 'log_errors=1' > (\S+)\/errors\.ini [^]*PHP_INI_SCAN_DIR=:\1\n/,
    ));

  it("says in its Dockerfile that Apache serves it, and ends at the signal at which other programs do", () =>
    expect(dockerfile(laravel)).toMatch(
      /^# Apache serves the app, with \.htaccess[^]*\nFROM php\n[^]*STOPSIGNAL SIGTERM\n/,
    ));
});

describe("a Ruby app", () => {
  it.each<[string, Files, string]>([
    ["Rails", rails, "rm -f tmp/pids/server.pid; exec bin/rails server -b 0.0.0.0 -p $PORT"],
    ["Rack", { Gemfile: 'gem "rackup"', "config.ru": "" }, "bundle exec rackup -o 0.0.0.0 -p $PORT"],
    ["Rack and Puma", { ...rails, "bin/rails": "", Procfile: "web: bundle exec puma" }, "bundle exec puma"],
    ["Puma", { Gemfile: 'gem "puma"', "config.ru": "" }, "bundle exec puma -b tcp://0.0.0.0:$PORT"],
    ["Sinatra", { Gemfile: 'gem "sinatra"', "app.rb": "" }, "bundle exec ruby app.rb -o 0.0.0.0 -p $PORT"],
  ])("of %s is started as such ones are", (_, files, startCommand) =>
    expect(plan(files)).toMatchObject({ kind: "ruby", startCommand }),
  );

  it("of Rails has its assets made, and the libraries that its gems need", () => {
    const text = dockerfile(rails);
    expect(text).toMatch(
      /SECRET_KEY_BASE_DUMMY=1 SECRET_KEY_BASE=\$\{SECRET_KEY_BASE:-dummy\} .*assets:precompile"/,
    );
    const [build, last] = [text.slice(0, text.lastIndexOf("FROM ")), text.slice(text.lastIndexOf("FROM "))];
    expect(build).toContain("libpq-dev");
    expect(last).toContain("libpq5");
    expect(last).not.toContain("build-essential");
  });

  it("has its style sheets made by Node, too, where package.json has a script for them", () => {
    const scripts = { build: "esbuild app.js", "build:css": "sass app.scss" };
    const build = (some: object) => {
      const manifest = { scripts: some, dependencies: { sass: "1" } };
      return /npm run build[^"]*/.exec(
        dockerfile({ ...rails, "package.json": JSON.stringify(manifest) }),
      )?.[0];
    };
    expect(build(scripts)).toBe("npm run build && npm run build:css");
    expect(build({ "build:css": "sass app.scss" })).toBe("npm run build:css");
    expect(build({ build: "esbuild app.js" })).toBe("npm run build");
  });

  it.each(["webpacker (5.4.4)", "shakapacker (8.0.0)", "vite_ruby (3.9.0)"])(
    "whose assets %s makes has Node and its packages while they are made, and neither where it runs",
    (gem) => {
      const manifest = { dependencies: { "@rails/webpacker": "5.4.4" } };
      const files = {
        ...rails,
        "Gemfile.lock": `GEM\n  specs:\n    ${gem}\n    rails (6.1.0)\n`,
        "package.json": JSON.stringify(manifest),
        "yarn.lock": "# yarn lockfile v1\n",
      };
      const [assets = "", build = "", last = ""] = dockerfile(files).split(/^(?=FROM )/m);
      expect(assets).toMatch(/^FROM node:24\S+ AS assets\n[^]*yarn install --frozen-lockfile/);
      expect(assets).not.toContain("rm -rf node_modules");
      expect(build).toMatch(
        /COPY --from=assets \/app\/ \.\/\nCOPY --from=assets \/usr\/local \/usr\/local\nCOPY --from=assets \/opt \/opt\nENV COREPACK_HOME=\/opt\/corepack .*NODE_OPTIONS="--openssl-legacy-provider"\n[^]*assets:precompile"\]\n.*rm -rf node_modules/,
      );
      expect(last).not.toMatch(/from=assets|node/);
    },
  );

  it("whose gems run JavaScript has Node where it is built and where it runs, unless a gem is a runtime itself", () => {
    const stages = (gems: string) =>
      dockerfile({ ...rails, "Gemfile.lock": `${rails["Gemfile.lock"]}${gems}` }).split(/^(?=FROM )/m);
    const copied = "\nCOPY --from=node /usr/local/bin/node /usr/local/bin/\n";
    const withNode = stages("    execjs (2.9.1)\n");
    expect(withNode.map((stage) => stage.includes(copied))).toEqual([false, true, true]);
    expect(withNode[0]).toBe("FROM node:24-bookworm-slim AS node\n");
    expect(stages("    execjs (2.9.1)\n    mini_racer (0.6.3)\n")).toHaveLength(2);
    expect(stages("")).toHaveLength(2);
  });

  it("has the very version of Ruby that Bundler asks for, and of others the newest of its kind", async () => {
    const gemfile = (line: string, files: Files = {}) =>
      plan({ ...rails, Gemfile: `${line}\ngem "rails"`, ...files });
    expect(plan(rails)).toMatchObject({ version: "3.3.1" });
    expect(gemfile('ruby "~> 3.3.1"')).toMatchObject({ version: "3.3" });
    const file = { ".ruby-version": "ruby-3.2.4\n" };
    expect(gemfile('ruby file: ".ruby-version"', file)).toMatchObject({ version: "3.2.4" });
    expect(gemfile("", file)).toMatchObject({ version: "3.2" });
    const chosen = await chooseBaseImages(plan(rails), (image) =>
      Promise.resolve(image.startsWith("ruby:3.3-")),
    );
    expect(chosen.images.ruby).toBe("ruby:3.3-slim-bookworm");
    expect(chosen.notes).toEqual([
      "This host cannot get ruby:3.3.1-slim-bookworm: ruby:3.3-slim-bookworm is used instead.",
    ]);
  });

  it("runs on its very version also where that was made for an older Debian only, before another of its kind", async () => {
    const chosen = (gemfile: string, ...has: string[]) =>
      chooseBaseImages(plan({ ...rails, Gemfile: gemfile }), (image) => Promise.resolve(has.includes(image)));
    const old = "ruby:3.1.2-slim-bullseye";
    expect((await chosen('ruby "3.1.2"', "ruby:3.1-slim-bookworm", old)).images.ruby).toBe(old);
    expect((await chosen('ruby "~> 2.6"', "ruby:2.6-slim-bullseye")).images.ruby).toBe(
      "ruby:2.6-slim-bullseye",
    );
  });

  it.each([
    ["ruby", false],
    ["x86_64-darwin-21\n  x86_64-linux", false],
    ["arm64-darwin-22", true],
    ["x64-mingw-ucrt", true],
  ])("whose lock file is for the platforms %j is installed where it is built", (platforms, isAdded) => {
    const lock = `${rails["Gemfile.lock"]}\nPLATFORMS\n  ${platforms}\n\nDEPENDENCIES\n  pg\n`;
    for (const text of [lock, lock.replaceAll("\n", "\r\n")]) {
      const added =
        /COPY source\/ \.\/\n[^]*BUNDLE_FROZEN=false bundle lock --add-platform [^]* && bundle install"/;
      expect(added.test(dockerfile({ ...rails, "Gemfile.lock": text }))).toBe(isAdded);
    }
  });
});

describe("a site that Python or Ruby builds", () => {
  it.each<[string, Files, string, string]>([
    ["MkDocs", { "mkdocs.yml": "", "requirements.txt": "mkdocs-material" }, "mkdocs build", "site"],
    [
      "Jekyll",
      { "_config.yml": "", Gemfile: 'gem "jekyll", "~> 4.4"' },
      "JEKYLL_ENV=production bundle exec jekyll build",
      "_site",
    ],
  ])("with %s is files, which are served from where it is built", (_, files, command, output) => {
    const text = dockerfile(files);
    const last = text.slice(text.lastIndexOf("FROM "));
    expect(text).toContain(`${command}"`);
    expect(text).toContain(`for folder in ${output}; do`);
    expect(last).toMatch(
      /^FROM caddy:2\n[^]*COPY --from=build \/srv\/output\/ \/srv\/\n[^]*USER 1000:1000\n/,
    );
    expect(plan(files, { startCommand: "./serve" })).toMatchObject({ startCommand: "./serve" });
    expect(plan(files, { buildCommand: "make" })).toMatchObject({ buildCommand: "make", startCommand: null });
  });

  it("with Jekyll needs no Gemfile: it is built as GitHub Pages builds it", () => {
    const files = { "_config.yml": "", "_layouts/default.html": "{{ content }}", "index.html": "---\n---\n" };
    expect(plan(files)).toMatchObject({ kind: "ruby", version: "3.3", manifests: [], startCommand: null });
    expect(dockerfile(files)).toMatch(
      /AS node\nFROM ruby:3[^]*gem \\"github-pages\\", group: :jekyll_plugins' > Gemfile"\][^]*bundle install[^]*COPY source\/ \.\/\n.*PAGES_REPO_NWO=.*jekyll build --config [^]*for folder in _site; do/,
    );
    expect(plan({ "_config.yml": "", "_posts/2026-01-01-a.md": "", "index.md": "" })).toMatchObject({
      kind: "ruby",
    });
    const others = [start, { scripts: { build: "eleventy" }, devDependencies: { "@11ty/eleventy": "3" } }];
    for (const manifest of others)
      expect(plan({ ...files, "package.json": JSON.stringify(manifest) }).kind).not.toBe("ruby");
    expect(plan({ ...files, ".nojekyll": "" }).kind).not.toBe("ruby");
    expect(plan(files, { buildCommand: "sh build.sh" }).kind).not.toBe("ruby");
    expect(plan({ "_config.yml": "", "index.html": "" })).toMatchObject({ kind: "static" });
    expect(plan(files, { outputDir: "_layouts" })).toMatchObject({ kind: "static" });
    expect(plan({ ...files, "server.js": "" }, { startCommand: "node server.js" })).toMatchObject({
      kind: "node",
    });
  });

  it("with GitHub's gem needs to know no repository of GitHub's, unless its configuration names one", () => {
    const text = dockerfile({ "_config.yml": "", Gemfile: 'gem "github-pages"' });
    const step = text.split("\n").find((line) => line.includes("jekyll build")) ?? "";
    const command = (JSON.parse(step.slice(step.indexOf("["))) as string[])[2] ?? "";
    const folder = temporaryFolder();
    const ran = (config: string, env: Record<string, string> = {}) => {
      writeFileSync(join(folder, "_config.yml"), config);
      const jekyll = `bundle() { echo "$PAGES_REPO_NWO"; exit; }; ${command}`;
      return execFileSync("sh", ["-c", jekyll], { cwd: folder, env, encoding: "utf8" }).trim();
    };
    expect(ran("title: a\n")).toBe("-none/-none.github.io");
    expect(ran("title: a\n", { PAGES_REPO_NWO: "a/b" })).toBe("a/b");
    expect(ran("repository: a/b\n")).toBe("");
  });

  it("is none where there is an app, whose documentation it is", () =>
    expect(plan({ "mkdocs.yml": "", "requirements.txt": "", "main.py": "" })).toMatchObject({
      startCommand: "python main.py",
    }));
});

describe("an app of any language", () => {
  const samples: [string, Files][] = [
    ["Node", { "package.json": JSON.stringify(start) }],
    ["site", { "package.json": JSON.stringify(vite), "package-lock.json": "" }],
    ["static", { "index.html": "" }],
    ["Python", { "requirements.txt": "flask", "main.py": "" }],
    ["Go", gin],
    ["PHP", laravel],
    ["Ruby", rails],
  ];
  it.each(samples)("is built by a %s Dockerfile that is not run as root and listens on PORT", (_, files) => {
    const text = dockerfile(files);
    const last = text.slice(text.lastIndexOf("FROM "));
    expect(last).toMatch(/^USER (1000:1000|node)$/m);
    expect(last).toMatch(/^ENV .*\bPORT=3000\b/m);
    expect(text).not.toMatch(/# ?syntax|<</);
    for (const { keyword, text: line } of instructions(text))
      if (keyword === "RUN" || keyword === "CMD")
        expect(JSON.parse(line.slice(line.indexOf("[")))).toHaveLength(3);
  });

  it.each(samples.filter(([name]) => name !== "static"))(
    "of %s keeps package caches of one tenant apart from another's, and secrets out of the image",
    (_, files) => {
      const text = dockerfile(files, { buildCommand: "make", startCommand: "./serve" });
      for (const [, id] of text.matchAll(/type=cache,id=([^,]+)/g)) expect(id).toMatch(/^site_x-packages-/);
      const last = text.slice(text.lastIndexOf("FROM "));
      expect(last).not.toContain("TOKEN");
      expect(text).not.toMatch(/(ARG|ENV) TOKEN/);
    },
  );

  it.each(samples.filter(([name]) => name !== "static" && name !== "Node"))(
    "of %s is installed with the build variables, such as a token of a private registry",
    (_, files) => {
      const install = /npm ci|pip install|go mod download|composer install|bundle install/;
      const variables = { plain: ["API_URL", "NODE_ENV"], secret: ["TOKEN"], cacheId: "x" };
      const lines = generateDockerfile(plan(files), variables).split("\n");
      const at = lines.findIndex((line) => line.startsWith("RUN") && install.test(line));
      expect(lines[at]).toMatch(/--mount=type=secret,id=env_TOKEN.*export TOKEN=/);
      expect(lines.slice(0, at)).toContain("ARG API_URL");
      expect(lines.slice(0, at)).not.toContain("ARG NODE_ENV");
    },
  );

  it.each(samples.filter(([name]) => name !== "static"))(
    "of %s is built and started by the owner's commands",
    (_, files) => {
      const command = `echo "a 'b' $HOME \\ && # x" ; cat /etc/hosts`;
      const found = instructions(dockerfile(files, { buildCommand: command, startCommand: command }));
      const run = found.find(({ text }) => text.startsWith("RUN") && text.includes("/etc/hosts"));
      expect(JSON.parse(run?.text.slice(run.text.indexOf("[")) ?? "")[2]).toMatch(/cat \/etc\/hosts$/);
      expect(JSON.parse(found.at(-1)?.text.replace("CMD ", "") ?? "")).toEqual(["sh", "-c", command]);
    },
  );

  it("has its assets built by Node where a package.json builds them", () => {
    const assets = { "package.json": JSON.stringify(vite), "package-lock.json": "" };
    for (const files of [laravel, rails, django, gin]) {
      const text = dockerfile({ ...files, ...assets });
      expect(text).toMatch(/FROM node:24-bookworm-slim AS assets\n[^]*npm ci[^]*npm run build/);
      expect(text).toContain("COPY --from=assets /app/ ./");
      expect(text.slice(text.lastIndexOf("FROM "))).not.toContain("node");
    }
  });

  it.each<[string, Files, string]>([
    ["gunicorn shop.wsgi", django, "python"],
    ["cd site && PYTHONUNBUFFERED=1 exec python3 run.py", { "requirements.txt": "" }, "python"],
    ["bundle exec puma -C config/puma.rb", rails, "ruby"],
    ["uv run --no-sync gunicorn shop.wsgi", django, "python"],
    ["poetry run python3.12 run.py", { "requirements.txt": "" }, "python"],
    ["bin/rails server -p $PORT", rails, "ruby"],
    ["vendor/bin/heroku-php-apache2 public/", laravel, "php"],
    ["node server.js", django, "node"],
    ["./python.sh", django, "node"],
  ])("that is started by %s is of that language, whatever start script its assets have", (web, app, kind) => {
    const files = { ...app, "package.json": '{"scripts":{"start":"webpack --watch","build":"webpack"}}' };
    const assets = kind === "node" ? {} : { assets: { buildCommand: "npm run build" } };
    expect(plan({ ...files, Procfile: `web: ${web}\n` })).toMatchObject({ kind, ...assets });
    expect(plan(files, { startCommand: web })).toMatchObject({ kind, ...assets });
  });

  it.each<[string, Files, string]>([
    ["bundle exec puma", rails, "ruby"],
    ["heroku-php-apache2 public/", { ...laravel, Gemfile: "" }, "php"],
    ["java -jar target/shop.jar", { "pom.xml": "<project/>" }, "java"],
    ["mix phx.server", { "mix.exs": "" }, "elixir"],
    ["python3.12 run.py", gin, "python"],
  ])("that is started by %s is of that language, whatever manifests others have", (web, app, kind) => {
    const files = { "requirements.txt": "", ...app };
    expect(plan({ ...files, Procfile: `web: ${web}\n` })).toMatchObject({ kind });
    expect(plan(files, { startCommand: web })).toMatchObject({ kind });
  });

  it("has Debian's packages that its Aptfile names, where it is built and where it runs", () => {
    const files = {
      Aptfile: "# of Heroku\nffmpeg # videos\n:repo:deb x\nhttps://a.example/b.deb\na;id\ntree=2.1.0-1\n",
    };
    expect(notesOf(sourcesOf(files))).toEqual([
      "Not read in the Aptfile: :repo:deb x, https://a.example/b.deb, a;id. Name Debian packages.",
      "Versions not heeded in the Aptfile: tree=2.1.0-1. Debian's own are installed.",
    ]);
    for (const [, sample] of samples) {
      const sources = sourcesOf({ ...sample, ...files });
      const text = generateDockerfile(detect(sources, none), variables, undefined, [], aptPackages(sources));
      expect(text).not.toMatch(/a;id|:repo|a\.example/);
      for (const stage of text.split(/^(?=FROM )/m).filter((one) => one.startsWith("FROM ")))
        expect(stage.includes("no-install-recommends ffmpeg tree &&")).toBe(
          !/^FROM (?:caddy|composer|php\s)/.test(stage),
        );
    }
  });

  it("says which processes of its Procfile nobody runs", () => {
    const Procfile = "web: node a.js\nrelease: node b.js\nworker: node c.js\n# x: y\nclock: node d.js\n";
    expect(notesOf(sourcesOf({ Procfile }))).toEqual([
      "Not run: worker, clock of the Procfile. A site runs its web process; use schedules, or a site of its own that listens on PORT.",
    ]);
    expect(notesOf(sourcesOf({ Procfile: "web: node a.js\nrelease: node b.js" }))).toEqual([]);
    // The worker's command may well be the one that is detected.
    expect(notesOf(sourcesOf({ Procfile: "worker: python bot.py\n", "bot.py": "" }))).toEqual([
      "The Procfile names worker and no web process, so the start command is detected. Whatever it starts, something must answer on PORT.",
    ]);
  });

  it("says that its pdm.lock is not read, where no file that is read names its packages instead", () => {
    const files = { "pyproject.toml": "[project]\nname = 'x'", "pdm.lock": "" };
    expect(notesOf(sourcesOf(files))).toEqual([
      expect.stringMatching(/^Not read: pdm\.lock\. .* pdm export/),
    ]);
    expect(notesOf(sourcesOf({ ...files, "requirements.txt": "" }))).toEqual([]);
  });

  it("without anything that starts it fails with what to set", () => {
    for (const files of [{ "requirements.txt": "" }, { Gemfile: "" }, { "composer.json": "{}" }])
      expect(() => plan(files as Files)).toThrow(/set startCommand/);
    expect(() => plan({ "main.py": "app = FastAPI()" })).toThrow(JobError);
    expect(plan({ "requirements.txt": "" }, { startCommand: "python -m x" })).toMatchObject({
      startCommand: "python -m x",
    });
  });
});

describe("a repository that is none of these is refused with what to do", () => {
  it.each<[string, Files, RegExp]>([
    ["Scala", { "build.sbt": "", "src/main/A.scala": "" }, /^Found build\.sbt: Scala .*Dockerfile. Add one/],
    [
      "Hugo",
      { "hugo.toml": "", "themes/a/package.json": "" },
      /Hugo .*\. Add one with .* FROM ghcr\.io\/gohugoio\/hugo AS build; .*; RUN hugo --minify; /,
    ],
    ["Hugo before 0.110", { "config.toml": "", "archetypes/default.md": "" }, /Hugo/],
    ["Hugo with modules", { "hugo.yaml": "", "go.mod": "module a\n" }, /^Found hugo\.yaml: Hugo /],
    ["Hugo with tools of Node's", { "hugo.toml": "", "package.json": "{}" }, /Hugo/],
    [
      "Zola",
      { "config.toml": 'title = "a"\nbase_url = "/"\n', "templates/index.html": "" },
      /^Found config\.toml: Zola /,
    ],
    [
      "a Worker, as Hono's generator makes it first",
      { "package.json": '{"scripts":{"dev":"wrangler dev"}}', "wrangler.jsonc": "{}", "src/index.ts": "" },
      /^Found wrangler\.jsonc: a Cloudflare Worker is not built without a Dockerfile\. Add one, or a "start" script that starts a server \(wrangler dev is for development only\)\.$/,
    ],
    ["Zola from 0.22", { "zola.toml": "" }, /^Found zola\.toml: Zola .* \["zola", "build"\]; /],
    [
      "mdBook beside its examples",
      { "book.toml": "", "src/SUMMARY.md": "", "examples/Cargo.toml": "" },
      /^Found src\/SUMMARY\.md: mdBook .* mdbook build/,
    ],
    ["mdBook with its pages elsewhere", { "book.toml": "" }, /^Found book\.toml: mdBook /],
    ["MkDocs without its packages", { "mkdocs.yml": "" }, /^Found mkdocs\.yml: MkDocs .* requirements\.txt /],
    [
      "a package with its documentation",
      { "package.json": "{}", "mkdocs.yml": "" },
      /^package\.json has neither/,
    ],
    [
      "folders of apps with their documentation",
      { "mkdocs.yml": "", "api/go.mod": "" },
      /in api: set rootDir/,
    ],
    [
      "Leptos",
      {
        "Cargo.toml": '[package]\nname = "a"\n\n[package.metadata.leptos]\noutput-name = "a"\n',
        "src/main.rs": "",
      },
      /^Found Cargo\.toml: Leptos is not built without a Dockerfile\. Add one that builds it with cargo leptos build --release, or set startCommand\.$/,
    ],
    [
      "Leptos in a workspace",
      { "Cargo.toml": '[workspace]\nmembers = ["app"]\n\n[[workspace.metadata.leptos]]\nname = "a"\n' },
      /^Found Cargo\.toml: Leptos /,
    ],
    [
      "Dioxus",
      { "Cargo.toml": "", "src/main.rs": "", "Dioxus.toml": "" },
      /^Found Dioxus\.toml: Dioxus .* dx bundle/,
    ],
    [
      "Trunk beside its page and tools of Node's",
      { "Cargo.toml": "", "src/main.rs": "", "Trunk.toml": "", "index.html": "", "package.json": "{}" },
      /Found Trunk\.toml: what Trunk bundles for browsers .* trunk build --release; .* \/site\/dist \/srv;/,
    ],
    ["any configuration", { "config.toml": "[server]\n" }, /^Found neither a Dockerfile/],
    [
      "the root of a workspace",
      { "package.json": '{"workspaces":["apps/*"]}', "apps/web/package.json": "{}" },
      /root starts nothing: set rootDir to the package to deploy \(apps\/web\)/,
    ],
    [
      "folders of apps",
      { "web/package.json": "", "api/go.mod": "", "api/x/index.html": "" },
      /in web, api: set rootDir/,
    ],
    ["files to be served", { "public/index.html": "" }, /in public: set rootDir/],
    ["Dockerfiles elsewhere", { "docker/Dockerfile.prod": "" }, /docker\/Dockerfile\.prod: .*dockerfilePath/],
    ["Podman's", { Containerfile: "", "README.md": "" }, /but Containerfile: .*dockerfilePath/],
    ["a Dockerfile in small letters elsewhere", { "api/dockerfile": "" }, /but api\/dockerfile: set rootDir/],
    [
      "Compose",
      { "compose.yaml": "" },
      /Found compose\.yaml.* a site for each .* a database for each PostgreSQL/,
    ],
    [
      "one of several programs with tools of Node's",
      {
        "go.mod": "",
        "cmd/a/main.go": "package main\n",
        "cmd/b/main.go": "package main\n",
        "package.json": "{}",
      },
      /^package\.json has neither a "start" script .* there for tools only: Found more than one program \(\.\/cmd\/a, /,
    ],
    [
      "Hugo with modules and tools of Node's",
      { "hugo.yaml": "", "go.mod": "", "package.json": "{}" },
      /^Found hugo\.yaml: (?!.*Found)/,
    ],
    ["nothing", { "README.md": "" }, /^Found neither a Dockerfile/],
    ["no path that rootDir takes", { "a b/index.html": "", ".devcontainer/Dockerfile": "" }, /neither/],
  ])("%s", (_, files, message) => {
    expect(() => plan(files)).toThrow(JobError);
    expect(() => plan(files)).toThrow(message);
  });

  it("with another host's file is told that it is not read", () => {
    const files = { "requirements.txt": "", "render.yaml": "", "railway.json": "" };
    expect(() => plan(files)).toThrow(
      /set startCommand\. Not read: railway\.json and render\.yaml\. .* the site's settings\.$/,
    );
    expect(notesOf(sourcesOf(files))).toEqual([expect.stringContaining("render.yaml")]);
    const ofHeroku = { ".buildpacks": "", "bin/pre_compile": "", "bin/post_compile": "", "project.toml": "" };
    expect(notesOf(sourcesOf(ofHeroku))).toEqual([
      expect.stringContaining(Object.keys(ofHeroku).toSorted().join(" and ")),
    ]);
  });

  it("names no more than a few of many folders", () => {
    const files = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`app${at}/go.mod`, ""]));
    expect(() => plan(files)).toThrow(/app4 and others: set rootDir/);
  });
});

describe("no text of a repository takes longer to read than in proportion to its length:", () => {
  const long = 900_000;
  const manifests = [
    ".eleventy.js",
    ".mise.toml",
    ".node-version",
    ".npmrc",
    ".nvmrc",
    ".python-version",
    ".ruby-version",
    ".tool-versions",
    ".yarnrc.yml",
    "Aptfile",
    "Gemfile",
    "Gemfile.lock",
    "Pipfile",
    "Procfile",
    "app.py",
    "astro.config.mjs",
    "composer.lock",
    "go.mod",
    "go.work",
    "main.go",
    "main.py",
    "manage.py",
    "mise.toml",
    "next.config.js",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "pyproject.toml",
    "react-router.config.ts",
    "requirements.txt",
    "runtime.txt",
    "vite.config.js",
    "vue.config.js",
    "yarn.lock",
  ];
  /** What the detectors' expressions look for. */
  const expression = /(?<=[=(,:!&|?[\s])\/(?![/*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n[])+\/[gimsu]*/g;
  const folder = join(import.meta.dirname, "../../agent/image-build/detect");
  const words = [
    ...new Set(
      readdirSync(folder)
        .flatMap((file) => readFileSync(join(folder, file), "utf8").match(expression) ?? [])
        .flatMap((found) => found.replace(/\\[a-z]/g, " ").match(/["'[(:=]{0,2}[A-Za-z@_-]{3,}[:=]?/g) ?? []),
    ),
  ];
  const fillers = [
    "\n",
    " ",
    "\t",
    "=",
    "[",
    "#",
    '"',
    "'",
    "*",
    "/",
    ":",
    "@",
    "(",
    "a",
    "0",
    "a=",
    "a ",
    "- ",
    "a/",
    "\n ",
    " \n",
    "? ",
    "{",
    "[,",
    "&a ",
    "a.",
  ];
  const texts = (length: number): [string, string][] => [
    [
      "words",
      words
        .join(" ")
        .repeat(1 + length / words.join(" ").length)
        .slice(0, length),
    ],
    ...fillers.map((filler): [string, string] => [filler, filler.repeat(length / filler.length)]),
    ...[" ", "\n", "=", " =", ": ", '"', "("].map((filler): [string, string] => [
      `words and ${filler}`,
      words.map((word) => word + filler.repeat(length / words.length / filler.length)).join("\n"),
    ]),
  ];

  function read(text: string): void {
    const files = Object.fromEntries(manifests.map((name) => [name, text]));
    const dependencies = { next: "1", vite: text, astro: "1", vue: "1", "@11ty/eleventy": "1", prisma: "1" };
    const manifest = {
      scripts: { build: text, start: text, "start:prod": text },
      engines: { node: text },
      main: text,
      packageManager: text,
      workspaces: [text.slice(0, 30_000)],
    };
    const kinds: Files[] = [
      files,
      { ...files, "package.json": text },
      { ...files, "package.json": JSON.stringify({ ...manifest, dependencies }) },
      { ...files, "package.json": JSON.stringify({ dependencies }) },
      { "requirements.txt": text, "main.py": text, "pyproject.toml": text },
      { Gemfile: text, "Gemfile.lock": text, "config.ru": "", ".ruby-version": text },
      { "go.mod": text, "main.go": text },
      { "index.php": "", "composer.json": text, Procfile: `web: ${text}`, "mise.toml": text },
      { "index.php": "", "composer.json": JSON.stringify({ require: { php: text } }), "composer.lock": text },
      {
        "index.php": "",
        "composer.json": JSON.stringify({ require: { "a/b": "1" }, scripts: { "post-install-cmd": text } }),
      },
    ];
    for (const kind of kinds) {
      const sources = sourcesOf(kind);
      const root = sourcesOf({ ...kind, "uv.lock": "" });
      for (const look of [
        () => aptPackages(sources),
        () => procfileRelease(sources),
        () => generateDockerfile(detect(sources, none), variables),
        () => workspaceOf(sources, root, "a"),
        () => repositoryOf(sources, root, "a"),
      ])
        try {
          look();
        } catch (error) {
          if (!(error instanceof JobError)) throw error;
        }
    }
  }

  it.each(texts(1).map(([name], at) => [JSON.stringify(name), at] as const))("%s", (_, at) => {
    // What takes the square of it is found by the short one, in time.
    for (const [length, mostMs] of [
      [30_000, 700],
      [long, 10_000],
    ] as const) {
      const text = texts(length)[at]?.[1] ?? "";
      const began = computedMs();
      read(text);
      expect(computedMs() - began).toBeLessThan(mostMs * slowness());
    }
  });
});

it("no number of files hides what is at the root of a repository", async () => {
  const folder = temporaryFolder();
  for (let number = 0; number < 500; number++) writeFileSync(join(folder, `a${number}.py`), "");
  writeFileSync(join(folder, "requirements.txt"), "flask");
  expect((await readSources(folder)).texts.get("requirements.txt")).toBe("flask");
});

it("what Windows wrote is read as package managers read it", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "requirements.txt"), Buffer.from("\ufeffflask\r\ngunicorn\r\n", "utf16le"));
  writeFileSync(join(folder, "app.py"), "\ufeffapp = Flask(__name__)\r\n");
  writeFileSync(join(folder, "package.json"), "\ufeff{}");
  const sources = await readSources(folder);
  expect(detect(sources, none)).toMatchObject({ startCommand: "gunicorn app:app --bind 0.0.0.0:$PORT" });
});

it("what a repository says is read without following links out of it", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "cmd", "web"), { recursive: true });
  mkdirSync(join(folder, "node_modules", "a"), { recursive: true });
  writeFileSync(join(folder, "cmd", "web", "main.go"), "package main");
  writeFileSync(join(folder, "node_modules", "a", "package.json"), "{}");
  writeFileSync(join(folder, "requirements.txt"), "x".repeat(2_000_000));
  symlinkSync("/etc/passwd", join(folder, "Procfile"));
  symlinkSync("/etc", join(folder, "public"));
  const { files, texts } = await readSources(folder);
  expect([...files].sort()).toEqual([
    "cmd/",
    "cmd/web/",
    "cmd/web/main.go",
    "node_modules/",
    "requirements.txt",
  ]);
  expect(texts.get("cmd/web/main.go")).toBe("package main");
  expect(texts.get("requirements.txt")!.length).toBeLessThan(1_000_000);
  expect(texts.has("Procfile")).toBe(false);
});
