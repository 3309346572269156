import { describe, expect, it } from "vitest";
import { dockerfile, type Files } from "../support/detected.ts";

describe("what is there for development only stays where an app's configuration loads it when it starts:", () => {
  const next = { scripts: { build: "next build", start: "next start" }, dependencies: { next: "15" } };
  const isPruned = (manifest: object, files: Files) => dockerfile(manifest, files).includes("npm prune");

  it.each([
    'const withTM = require("next-transpile-modules")(["ui"]);',
    "import bundle from '@next/bundle-analyzer';",
    'import mdx from "@next/mdx/x.js"',
    'const { config } = await import("./config.js");',
    'require("../../base.config")',
  ])("next.config says %s", (text) => {
    const devDependencies = {
      "next-transpile-modules": "9",
      "@next/bundle-analyzer": "15",
      "@next/mdx": "15",
    };
    for (const file of ["next.config.js", "next.config.mjs"])
      expect(isPruned({ ...next, devDependencies }, { [file]: text })).toBe(false);
  });

  it.each<[string, object, Files]>([
    ["names none", { devDependencies: { eslint: "9" } }, { "next.config.js": 'images: ["a.com"]' }],
    [
      "names one that is installed anyway",
      { dependencies: { next: "15", "next-pwa": "5" }, devDependencies: { "next-pwa": "5" } },
      { "next.config.js": 'require("next-pwa")' },
    ],
    ["is another framework's", { devDependencies: { eslint: "9" } }, { "astro.config.mjs": "'eslint'" }],
  ])("not where it %s", (_, more, files) => expect(isPruned({ ...next, ...more }, files)).toBe(true));

  it("also where Vite or Nuxt is what serves the built app", () => {
    const devDependencies = { "@vitejs/plugin-react": "5" };
    const files = { "vite.config.ts": "import react from '@vitejs/plugin-react'" };
    const vite = { dependencies: { vite: "7", express: "5" }, devDependencies };
    const start = "node --run serve && vite preview --host";
    expect(isPruned({ ...vite, scripts: { start } }, files)).toBe(false);
    expect(isPruned({ ...vite, scripts: { start: "node server.js" } }, files)).toBe(true);
  });
});
