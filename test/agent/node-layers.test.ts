import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { parseInstructions } from "../../agent/image-build/instructions.ts";
import { dockerfile, type Files } from "../support/detected.ts";

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
      /^FROM install AS build\nCOPY --from=modules \/state \/state\nCOPY source\/ \.\/\n[^]*run build"\]\n/,
    );
    expect(last).toMatch(
      /COPY --from=modules --chown=node:node \/app\/node_modules \/app\/node_modules\nCOPY --from=modules --chown=node:node \/state \/app\/node_modules\nCOPY --from=build --chown=node:node \/own \/app\n/,
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

it("an app that nothing builds is its source beside its packages, without those for development", () => {
  const plain = { ...built, scripts: { start: "node ." } };
  expect(dockerfile(plain)).toMatch(
    /npm install"\]\nRUN .*npm prune --omit=dev.*\nFROM [^]*\/app\/node_modules \/app\/node_modules\nCOPY --chown=node:node source\/ \/app\/\n/,
  );
  const watched = { ...plain, scripts: { start: "tsc --watch" } };
  expect(dockerfile(watched)).not.toContain("prune");
  expect(dockerfile(watched)).toContain("\nCOPY --chown=node:node source/ /app/\n");
});

it("an app whose code is generated has its source before that, though nothing builds it", () => {
  const prisma = { scripts: { start: "node ." }, dependencies: { "@prisma/client": "6", prisma: "6" } };
  expect(dockerfile(prisma, { "prisma/schema.prisma": "" })).toMatch(
    /COPY source\/ \.\/\nRUN .*prisma generate"\]\n/,
  );
});

it("what a build writes into packages is part of the app, and what it found there is not", () => {
  const folder = mkdtempSync(join(tmpdir(), "node-layers-"));
  const app = join(folder, "app");
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(app, path)), { recursive: true });
    writeFileSync(join(app, path), text);
  };
  try {
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
    const line = parseInstructions(dockerfile(built)).instructions.find(({ text }) =>
      text.includes("newercc"),
    );
    const [program = "", ...args] = JSON.parse(line?.text.replace("RUN ", "") ?? "[]") as string[];
    const own = args.map((arg) => arg.replaceAll("/own", join(folder, "own")));
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
  } finally {
    rmSync(folder, { recursive: true });
  }
});
