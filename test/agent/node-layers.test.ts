import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { parseInstructions } from "../../protocol/dockerfile.ts";
import { dockerfile, node, variables, type Files } from "../support/detected.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const built = {
  scripts: { build: "tsc", start: "node dist" },
  dependencies: { express: "5" },
  devDependencies: { typescript: "5" },
};

it.each<[string, Files, string]>([
  ["npm", { "package-lock.json": "" }, "npm prune --omit=dev"],
  ["pnpm", { "pnpm-lock.yaml": "" }, "pnpm prune --prod"],
  ["Yarn", { "yarn.lock": "" }, "yarn install --production"],
])(
  "what %s leaves out is left out of what the manifests made, before the build and whatever the source is",
  (_, lock, prune) => {
    const [install = "", modules = "", build = "", last = ""] = dockerfile(built, lock).split(/^(?=FROM )/m);
    expect(install).not.toContain("COPY source/ ./");
    expect(modules).toMatch(/^FROM install AS modules\n/);
    expect(modules).toContain(prune);
    expect(modules.match(/^(?:COPY|ARG)/m)).toBeNull();
    expect(build).toMatch(
      /^FROM install AS build\nCOPY --from=modules \/srv\/state \/srv\/state\nCOPY source\/ \.\/\n[^]*run build"\]\n/,
    );
    expect(last).toMatch(
      /COPY --from=modules --chown=node:node \/app\/node_modules \/app\/node_modules\nCOPY --from=modules --chown=node:node \/srv\/state \/app\/node_modules\nCOPY --from=build --chown=node:node \/srv\/own \/app\n/,
    );
  },
);

it.each<[string, object, Files]>([
  ["the install reads the source", {}, { "patches/a.patch": "" }],
  ["it is a workspace", { workspaces: ["a"] }, {}],
  ["Yarn 2 or later keeps its own state", {}, { "yarn.lock": "__metadata:" }],
])("it is left out after the build where %s", (_, more, files) =>
  expect(dockerfile({ ...built, ...more }, files)).not.toContain("AS modules"),
);

it.each<[string, Files]>([
  ["npm", { "package-lock.json": "" }],
  ["pnpm", { "pnpm-lock.yaml": "" }],
  ["Yarn", { "yarn.lock": "" }],
  ["Yarn 2 or later", { "yarn.lock": "__metadata:" }],
])("%s has the secret build variables that its configuration names also where it leaves out", (_, lock) => {
  const given = { ...variables, secret: ["NPM_TOKEN", "NODE_ENV"] };
  for (const workspaces of [undefined, ["a"]]) {
    const lines = generateDockerfile(node({ ...built, workspaces }, lock), given).split("\n");
    const prune = lines.filter((line) => /^RUN .*(?:npm prune|--production|--prod )/.test(line));
    expect(prune).toHaveLength(1);
    expect(prune[0]).toContain("id=env_NPM_TOKEN [");
    expect(prune[0]).toContain("export NPM_TOKEN=");
  }
});

it("what patch-package changed stays so with Yarn 1, which would put the files of packages back", () => {
  const patched = { ...built, devDependencies: { typescript: "5", "patch-package": "8" } };
  const files = { "patches/a.patch": "" };
  expect(dockerfile(patched, { "yarn.lock": "", ...files })).not.toContain("--production");
  expect(dockerfile(patched, { "yarn.lock": "__metadata:", ...files })).toContain("--production");
  expect(dockerfile(patched, files)).toContain("npm prune");
});

it("an app that nothing builds is its source beside its packages, without those for development", () => {
  const plain = { ...built, scripts: { start: "node ." } };
  expect(dockerfile(plain)).toMatch(
    /npm install"\]\nRUN .*npm prune --omit=dev.*\nFROM [^]*\/app\/node_modules \/app\/node_modules\nCOPY --chown=node:node source\/ \/app\/\n/,
  );
  const watched = { ...plain, scripts: { start: "tsc --watch" } };
  expect(dockerfile(watched)).not.toContain("prune");
  expect(dockerfile(watched)).toContain("\nCOPY --chown=node:node source/ /app/\n");
});

describe("an app that nothing builds, and whose lock file tells that no package runs a script,", () => {
  const manifest = {
    scripts: { start: "node ." },
    dependencies: { express: "5" },
    devDependencies: { vitest: "5" },
  };
  const { dependencies, devDependencies } = manifest;
  const lock = (packages: object = {}) => ({
    "package-lock.json": JSON.stringify({
      lockfileVersion: 3,
      packages: { "": { dependencies, devDependencies }, ...packages },
    }),
  });
  const stages = (files: Files, more: object = {}) =>
    dockerfile({ ...manifest, ...more }, files).match(/^FROM /gm)?.length;

  it("is installed where it runs, without what is for development, and owned by its user", () => {
    const text = dockerfile(manifest, lock({ "node_modules/express": {} }));
    expect(text.match(/^FROM /gm)).toHaveLength(1);
    const [before = "", after = ""] = text.split("\nCOPY --chown=node:node source/ ./\n");
    expect(before).toContain("COPY source/package.json source/package-lock.json ./\n");
    expect(before).toMatch(
      /NPM_CONFIG_OMIT=dev; \{ npm ci .* && rm -rf \/tmp\/npm && chown -R node:node \/app"\]$/,
    );
    expect(after).toMatch(/^ENV NODE_ENV=production PORT=3000 .*\nUSER node\n/);
  });

  it("keeps what is for development where that starts it", () => {
    const started = { scripts: { start: "vitest" } };
    expect(dockerfile({ ...manifest, ...started }, lock())).not.toContain("NPM_CONFIG_OMIT");
  });

  it("leaves nothing of the memory that its build may use in the image", () => {
    const text = generateDockerfile(node(manifest, lock()), { ...variables, memoryMb: 2048 });
    expect(text).toContain("export ");
    expect(text).not.toMatch(/^ENV .*NODE_OPTIONS/m);
  });

  it.each<[string, Files, object?]>([
    ["a package runs a script", lock({ "node_modules/sharp": { hasInstallScript: true } })],
    ["a package is a folder's", lock({ "node_modules/own": { link: true } })],
    ["the lock file does not fit package.json", lock(), { dependencies: { express: "4" } }],
    ["the lock file is one of old", { "package-lock.json": '{ "lockfileVersion": 1, "dependencies": {} }' }],
    ["the lock file cannot be read", { "package-lock.json": "{" }],
    ["another lock file goes before it", { ...lock(), "npm-shrinkwrap.json": "{}" }],
    ["Yarn installs it", { ...lock(), "yarn.lock": "" }, { packageManager: "yarn@1.22.22" }],
  ])("is installed apart where %s", (_, files, more) => expect(stages(files, more)).toBe(2));

  it("is installed apart where a build variable would stay in the image's history", () =>
    expect(
      generateDockerfile(node(manifest, lock()), { ...variables, plain: ["TOKEN"] }).match(/^FROM /gm),
    ).toHaveLength(2));
});

describe("a start script that is Node and its arguments", () => {
  const manifest = {
    name: "@shop/web",
    version: "1.2.0",
    scripts: { start: "node --enable-source-maps server.js" },
  };

  it("is run without the package manager, with what apps read of it", () => {
    expect(node(manifest)).toMatchObject({ startCommand: "node --enable-source-maps server.js" });
    expect(dockerfile(manifest)).toMatch(
      /^ENV .* npm_lifecycle_event=start npm_package_name=@shop\/web npm_package_version=1\.2\.0 PATH=\/app\/node_modules\/\.bin:\$PATH$/m,
    );
    expect(dockerfile(manifest)).toContain('CMD ["sh","-c","exec node --enable-source-maps server.js"]');
  });

  it.each<[string, object, Files?]>([
    ["another script comes before it", { scripts: { prestart: "echo", start: "node server.js" } }],
    ["it is more than that", { scripts: { start: "node server.js && echo" } }],
    ["it has quotes", { scripts: { start: "node -e 'a'" } }],
    ["package.json has settings for scripts", { config: { port: "1" } }],
    ["the name is none", { name: "a b" }],
    ["the version is none", { version: "$(id)" }],
    ["npm is told of options for Node", {}, { ".npmrc": "node-options=--title=a" }],
  ])("is run by npm where %s", (_, more, files) =>
    expect(node({ ...manifest, ...more }, files)).toMatchObject({
      startCommand: "npm start",
      startVariables: [],
    }),
  );

  it("is run by Yarn where that resolves packages by itself", () =>
    expect(node(manifest, { "yarn.lock": "__metadata:", ".pnp.cjs": "" })).toMatchObject({
      startCommand: "yarn start",
    }));
});

it("an app whose code is generated has its source before that, though nothing builds it", () => {
  const prisma = { scripts: { start: "node ." }, dependencies: { "@prisma/client": "6", prisma: "6" } };
  expect(dockerfile(prisma, { "prisma/schema.prisma": "" })).toMatch(
    /COPY source\/ \.\/\nRUN .*prisma generate"\]\n/,
  );
});

it("what a build writes into packages is part of the app, and what it found there is not", () => {
  const folder = temporaryFolder();
  const app = join(folder, "app");
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(app, path)), { recursive: true });
    writeFileSync(join(app, path), text);
  };
  put("node_modules/express/index.js", "express");
  put("node_modules/patched/index.js", "before");
  put("package.json", "{}");
  put("src/a.js", "a");
  const changedAt = (path: string) => statSync(join(app, path), { bigint: true }).ctimeNs;
  // The clock of a file system takes some milliseconds to go on.
  do put("node_modules/patched/index.js", "after");
  while (changedAt("node_modules/patched/index.js") <= changedAt("package.json"));
  put("node_modules/.prisma/client/index.js", "generated");
  put("node_modules/.cache/x", "cache");
  symlinkSync("../patched/index.js", join(app, "node_modules/.prisma/link"));
  const line = parseInstructions(dockerfile(built)).instructions.find(({ text }) => text.includes("newercc"));
  const [program = "", ...args] = JSON.parse(line?.text.replace("RUN ", "") ?? "[]") as string[];
  const own = args.map((arg) => arg.replaceAll("/srv/own", join(folder, "own")));
  expect(spawnSync(program, own, { cwd: app, encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
  const read = (path: string) => {
    const file = join(folder, "own", path);
    return existsSync(file) ? readFileSync(file, "utf8") : null;
  };
  expect(read("src/a.js")).toBe("a");
  expect(read("node_modules/patched/index.js")).toBe("after");
  expect(read("node_modules/.prisma/client/index.js")).toBe("generated");
  expect(read("node_modules/.prisma/link")).toBe("after");
  expect(read("node_modules/express/index.js")).toBeNull();
  expect(read("node_modules/.cache/x")).toBeNull();
});
