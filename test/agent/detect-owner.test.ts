import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import type { Overrides } from "../../agent/image-build/detect/sources.ts";
import { inspectInReader } from "../../agent/image-build/inspect/inspect-in-reader.ts";
import { prepareBuild, type Input } from "../../agent/image-build/prepare.ts";
import { dockerfileWith, plan, type Files } from "../support/detected.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const variables = { plain: ["API_URL"], secret: [], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);

const node = { "package.json": '{"scripts":{"start":"node .","build":"make"}}' };
const languages: [string, Files][] = [
  ["Node", node],
  ["Python", { "main.py": "" }],
  ["Python with a lock file", { "uv.lock": "", "main.py": "" }],
  ["Ruby", { Gemfile: "", "config.ru": "" }],
  ["PHP", { "composer.json": "{}", "composer.lock": "{}", "index.php": "" }],
  ["Go", { "go.mod": "", "main.go": "package main\n" }],
  ["Java", { "pom.xml": "" }],
  [".NET", { "a.csproj": "" }],
  ["Rust", { "Cargo.toml": '[package]\nname = "a"\n', "src/main.rs": "" }],
  ["Elixir", { "mix.exs": '[app: :a]\n{:plug, "~> 1"}' }],
  ["Deno", { "deno.json": "{}", "main.ts": "" }],
  ["no known language", { "start.sh": "" }],
];

describe("the owner's settings", () => {
  it.each(languages)("name the command that installs the dependencies of %s", (_, files) => {
    const text = dockerfile(files, { installCommand: "./install --own" });
    expect(text.match(/\.\/install --own/g)).toHaveLength(1);
    expect(text).not.toMatch(
      /npm (?:ci|install)|uv sync|bundle install|mod download|dotnet restore|deps\.get/,
    );
    expect(text.indexOf("COPY source/ ./")).toBeLessThan(text.indexOf("./install --own"));
  });

  it.each<[string, Files, Overrides["languageVersion"], object]>([
    ["Node", node, "22", { node: "node:22-bookworm-slim" }],
    ["Python", { "main.py": "", ".python-version": "3.11" }, "3.12", { python: "python:3.12-slim-bookworm" }],
    ["Go", { "go.mod": "", "main.go": "package main\n" }, "1.24", { go: "golang:1.24-bookworm" }],
    ["PHP", { "index.php": "" }, "8.3", { php: "php:8.3-apache" }],
    ["Java", { "pom.xml": "" }, "17", { jre: "eclipse-temurin:17-jre", maven: "maven:3-eclipse-temurin-17" }],
    [".NET", { "a.csproj": "" }, "9", { dotnetSdk: "mcr.microsoft.com/dotnet/sdk:9.0" }],
    ["Rust", { "Cargo.toml": "" }, "1.85", { rust: "rust:1.85-bookworm" }],
  ])("name the version of %s", async (_, files, languageVersion, expected) => {
    const { images } = await chooseBaseImages(plan(files, { languageVersion }), () => Promise.resolve(true));
    expect(images).toMatchObject(expected);
  });

  it.each<[string, Files, string[]]>([
    ["Go", { "go.mod": "", "main.go": "package main\n" }, ["CGO_ENABLED", "GOTOOLCHAIN"]],
    ["Ruby", { Gemfile: 'gem "rails"\n', "bin/rails": "" }, ["RAILS_ENV", "BUNDLE_WITHOUT"]],
  ])("leave the site's own variables for a build of %s to go before ours", (_, files, plain) => {
    const [build = ""] = dockerfileWith({ ...variables, plain })(files).split("\nFROM ");
    for (const name of plain) {
      expect(build).toContain(`ARG ${name}\n`);
      expect(build).not.toMatch(new RegExp(`^ENV .*\\b${name}=`, "m"));
      expect(dockerfile(files)).toMatch(new RegExp(`^ENV .*\\b${name}=`, "m"));
    }
  });

  it("name the folder that is served, of an app that would be started as well", () => {
    const text = dockerfile(node, { outputDir: "web/out" });
    expect(text).toMatch(/for folder in web\/out; do/);
    expect(text).not.toContain("newermc");
    expect(text).toMatch(/npm run build[^]*FROM caddy:2/);
    expect(dockerfile({ "book/index.html": "" }, { outputDir: "book" })).toContain("COPY source/book/ /srv/");
    expect(dockerfile({ "build.py": "" }, { buildCommand: "python build.py", outputDir: "out" })).toMatch(
      /FROM python[^]*python build\.py[^]*for folder in out; do[^]*FROM caddy:2/,
    );
    expect(dockerfile({}, { buildCommand: "make", outputDir: "out" })).toMatch(/FROM debian[^]*FROM caddy:2/);
    expect(() => plan({ "go.mod": "", "main.go": "package main\n" }, { outputDir: "out" })).toThrow(
      /outputDir is set .*\(go\): remove outputDir/,
    );
    expect(plan(node, { outputDir: "out", startCommand: "npm start" })).toMatchObject({ kind: "node" });
  });

  it("say whether one page answers every path", () => {
    const page = { "index.html": "" };
    expect(dockerfile(page)).not.toContain("{path}.html /index.html");
    expect(dockerfile(page, { singlePage: true })).toContain("{path}.html /index.html");
    const vue = {
      "package.json":
        '{"scripts":{"build":"vue-cli-service build"},"devDependencies":{"@vue/cli-service":"5"}}',
    };
    expect(dockerfile(vue)).toContain("{path}.html /index.html");
    expect(dockerfile(vue, { singlePage: false })).not.toContain("{path}.html /index.html");
  });
});

describe("what a repository is built by", () => {
  const folder = temporaryFolder();
  const prepared = (input: Partial<Input>) =>
    prepareBuild(
      folder,
      {
        siteId: "site_x",
        rootDir: null,
        dockerfilePath: null,
        buildCommand: null,
        startCommand: null,
        env: [],
        ...input,
      },
      null,
    );

  it("is detected where its Dockerfile is set aside, and by its Dockerfile where that is demanded", async () => {
    writeFileSync(join(folder, "index.html"), "");
    await expect(prepared({ options: { builder: "dockerfile" } })).rejects.toThrow(
      /^builder is dockerfile, but the repository has no Dockerfile .* set dockerfilePath to it, or remove builder\.$/,
    );
    writeFileSync(join(folder, "Dockerfile"), "FROM scratch\n");
    expect(await prepared({})).toMatchObject({ generated: null });
    expect(await prepared({ options: { builder: "dockerfile" } })).toMatchObject({ generated: null });
    for (const dockerfilePath of [null, "Dockerfile"])
      expect((await prepared({ options: { builder: "detect" }, dockerfilePath })).generated).toContain(
        "FROM caddy:2",
      );
  });

  it("is a Dockerfile in the folder of the app, from which its path counts", async () => {
    mkdirSync(join(folder, "apps", "api"), { recursive: true });
    writeFileSync(join(folder, "apps", "api", "Dockerfile"), "FROM scratch\n");
    const rootDir = "apps/api";
    expect(await prepared({ rootDir, dockerfilePath: "Dockerfile" })).toMatchObject({ generated: null });
    await expect(prepared({ rootDir, dockerfilePath: "apps/api/Dockerfile" })).rejects.toThrow(
      "The file apps/api/Dockerfile does not exist in apps/api: dockerfilePath is relative to rootDir.",
    );
  });

  it("is a Dockerfile in small letters, as with Docker, but no folder of that name", async () => {
    const rootDir = "small";
    mkdirSync(join(folder, rootDir, "dockerfile"), { recursive: true });
    writeFileSync(join(folder, rootDir, "index.html"), "");
    expect((await prepared({ rootDir })).generated).toContain("FROM caddy:2");
    expect(await inspectInReader({ program: "inspect", folder, rootDir })).toMatchObject({
      builder: "detected",
    });
    rmdirSync(join(folder, rootDir, "dockerfile"));
    writeFileSync(join(folder, rootDir, "dockerfile"), "FROM scratch\nEXPOSE 8080\n");
    expect(await prepared({ rootDir })).toMatchObject({
      generated: null,
      dockerfile: { name: "dockerfile" },
    });
    expect(await inspectInReader({ program: "inspect", folder, rootDir })).toMatchObject({
      builder: "dockerfile",
      port: 8080,
    });
  });

  it("has the commit where something that is read names it, and keeps its install cached from commit to commit", async () => {
    const rootDir = "stamped";
    mkdirSync(join(folder, rootDir));
    const manifest = { scripts: { start: "node .", build: "vite build" }, dependencies: { vite: "7" } };
    writeFileSync(join(folder, rootDir, "package.json"), JSON.stringify(manifest));
    const textOf = async (input: Partial<Input> = {}) =>
      (await prepared({ rootDir, ...input })).dockerfile.text;
    expect(await textOf()).not.toContain("BERTH_COMMIT");
    expect(await textOf({ buildCommand: "vite build --mode $BERTH_COMMIT" })).toContain("ARG BERTH_COMMIT\n");
    writeFileSync(
      join(folder, rootDir, "vite.config.js"),
      "export default { define: { commit: process.env.BERTH_COMMIT } };",
    );
    expect(await textOf()).toMatch(
      /npm install[^]*\nCOPY source\/ \.\/\nARG BERTH_COMMIT\nRUN [^\n]*npm run build/,
    );
  });

  it("are commands that find the programs of the app's packages, after those of the image", () => {
    const next = { "package.json": '{"scripts":{"build":"next build"},"dependencies":{"next":"16"}}' };
    const withOwn = "ENV [^\n]* PATH=\\$PATH:/app/node_modules/\\.bin(?: [^\n]*)?\n[^]*";
    const started = new RegExp(
      `^FROM [^]*${withOwn}vite build[^]*\nFROM [^]*${withOwn}exec next start -p \\$PORT`,
    );
    const settings = { buildCommand: "vite build" };
    expect(dockerfile(next, { ...settings, startCommand: "next start -p $PORT" })).toMatch(started);
    expect(dockerfile({ ...next, Procfile: "web: next start -p $PORT\n" }, settings)).toMatch(started);
  });

  it("is told that a Dockerfile set aside is all there is", () =>
    expect(() => plan({ Dockerfile: "FROM scratch\n" })).toThrow(
      /^builder is detect, so the Dockerfile is not read, and no other file .* remove builder, or set startCommand\.$/,
    ));

  it("names a setting that nothing reads", async () => {
    const { generated } = await prepared({
      options: { builder: "detect", outputDir: "out" },
      startCommand: "./serve",
    });
    expect(generated).toContain("# outputDir is not read, because startCommand starts a program.");
    const detected = await prepared({ options: { builder: "detect" }, dockerfilePath: "Dockerfile" });
    expect(detected.generated).toContain("# dockerfilePath is not read, because builder is detect.");
    const page = {
      buildCommand: "make",
      options: { builder: "detect", installCommand: "make deps" },
    } as const;
    expect((await prepared(page)).generated).toContain(
      "# Not read: buildCommand and installCommand, because the files are served as they are. For a build that makes them, set buildCommand and outputDir.",
    );
    expect((await prepared({ options: { builder: "detect", singlePage: true } })).generated).not.toContain(
      "Not read",
    );
    const started = await prepared({
      options: { builder: "detect", singlePage: false },
      startCommand: "./serve",
    });
    expect(started.generated).toContain(
      "# Not read: singlePage, because a program is started, which answers every path itself.",
    );
    mkdirSync(join(folder, "own"));
    writeFileSync(join(folder, "own", "Dockerfile"), "FROM scratch\nCMD a\n");
    const own = { rootDir: "own", startCommand: "./serve" };
    expect((await prepared(own)).notes).toEqual([]);
    const settings = { buildCommand: "make", options: { languageVersion: "22", singlePage: true } };
    expect((await prepared({ ...own, ...settings })).notes).toEqual([
      "These settings are not read, because the app is built by its Dockerfile: buildCommand, languageVersion, singlePage. To use them, set builder to detect.",
    ]);
  });
});
