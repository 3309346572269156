import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { detect } from "../../agent/image-build/detect/index.ts";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import { JobError } from "../../agent/job.ts";
import { computedMs, slowness } from "../support/computed.ts";
import { sourcesOf } from "../support/sources.ts";

/** By language, the files whose text is read. */
const languages = {
  java: ["pom.xml", "system.properties", ".java-version", ".sdkmanrc"],
  gradle: ["build.gradle", "settings.gradle", "gradle/wrapper/gradle-wrapper.properties"],
  dotnet: ["Web.csproj", "global.json", "Directory.Build.props"],
  rust: ["Cargo.toml", "Cargo.lock", "src/main.rs"],
  elixir: ["mix.exs", "elixir_buildpack.config", ".tool-versions"],
  deno: ["deno.json", "main.ts", ".deno-version", "package.json"],
};
const long = 900_000;
const folder = join(import.meta.dirname, "../../agent/image-build/detect");
const words = [
  ...new Set(
    ["java", "dotnet", "rust", "elixir", "deno", "repository"]
      .map((name) => readFileSync(join(folder, `${name}.ts`), "utf8"))
      .flatMap((text) => text.match(/["'[(:=<]{0,2}[A-Za-z@_.-]{3,}[:=>]?/g) ?? []),
  ),
];
const fillers = [
  "\n",
  " ",
  "\t",
  "=",
  "[",
  "(",
  '"',
  '"\\',
  "/*",
  "//",
  "*",
  "<",
  ",",
  "{",
  "a",
  "0",
  "[package]\n",
  "<release>",
  "include ",
  "releases:[",
  '"../',
];
const texts = [
  ...fillers.map((filler) => filler.repeat(long / filler.length)),
  ...["", " ", "\n", "= ", ": "].map((filler) =>
    words.map((word) => word + filler.repeat(long / words.length / (filler.length || 1))).join("\n"),
  ),
  "{" + '"a": 1,'.repeat(long / 7),
  `{"tasks": {"start": "${"deno a/".repeat(long / 7)}"}}`,
];

it.each(Object.entries(languages))(
  "no text of a repository of %s takes longer to read than in proportion to its length",
  (_, files) => {
    for (const text of texts) {
      const sources = sourcesOf(Object.fromEntries(files.map((name) => [name, text])));
      const before = computedMs();
      try {
        repositoryOf(sources, sources, "apps/web");
        detect(sources, { buildCommand: null, startCommand: null });
      } catch (error) {
        if (!(error instanceof JobError)) throw error;
      }
      expect(computedMs() - before, JSON.stringify(text.slice(0, 40))).toBeLessThan(1500 * slowness());
    }
  },
  300_000,
);
