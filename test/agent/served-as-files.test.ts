import { expect, it } from "vitest";
import { detect } from "../../agent/image-build/detect/index.ts";
import { isServedAsFiles } from "../../agent/image-build/detect/plan.ts";

const planOf = (texts: Record<string, string>) =>
  detect(
    { files: new Set(Object.keys(texts)), texts: new Map(Object.entries(texts)) },
    { buildCommand: null, startCommand: null },
  );

it.each([
  ["plain files", { "index.html": "" }, true],
  ["MkDocs", { "requirements.txt": "mkdocs\n", "mkdocs.yml": "site_name: a\n" }, true],
  ["Jekyll", { Gemfile: 'gem "jekyll"\n' }, true],
  ["a Python app", { "requirements.txt": "", "main.py": "" }, false],
  ["a Rust program", { "Cargo.toml": '[package]\nname = "a"\n', "src/main.rs": "" }, false],
  ["a Java app", { "pom.xml": "<project></project>" }, false],
  ["a Node app", { "package.json": '{"scripts":{"start":"node ."}}' }, false],
])("%s runs a program of its own, or is served as files", (_, texts, expected) => {
  expect(isServedAsFiles(planOf(texts as Record<string, string>))).toBe(expected);
});
