import { describe, expect, it } from "vitest";
import { node, type Files } from "../support/detected.ts";

const root = { dependencies: { next: "15", vite: "7" }, devDependencies: { nx: "21" } };
const nx = { "nx.json": "{}" };
const web: Files = {
  ...nx,
  "apps/web/next.config.js": "",
  "apps/web/project.json": "{}",
  "apps/web-e2e/project.json": "{}",
};

describe("an Nx workspace whose package.json says neither what builds nor what starts it", () => {
  it.each<[string, Files, string, string]>([
    ["by its folder", web, "npx nx build web", "cd apps/web && exec npx next start"],
    [
      "by its name",
      { ...web, "apps/web/project.json": '{"name":"shop"}' },
      "npx nx build shop",
      "cd apps/web && exec npx next start",
    ],
    [
      "by its package's name",
      { ...nx, "apps/web/next.config.mjs": "", "apps/web/package.json": '{"name":"@shop/web"}' },
      "npx nx build @shop/web",
      "cd apps/web && exec npx next start",
    ],
    [
      "in its own output folder",
      { ...web, "apps/web/project.json": '{"targets":{"build":{"options":{"outputPath":"dist/apps/web"}}}}' },
      "npx nx build web",
      "cd dist/apps/web && exec npx next start",
    ],
    [
      "as a server of Node's",
      {
        ...nx,
        "apps/api/project.json":
          '{"targets":{"build":{"executor":"@nx/esbuild:esbuild","options":{"outputPath":"dist/apps/api"}}}}',
      },
      "npx nx build api",
      "node dist/apps/api/main.js",
    ],
  ])("is its only app, built and started %s", (_, files, buildCommand, startCommand) =>
    expect(node(root, files)).toMatchObject({ kind: "node", buildCommand, startCommand }),
  );

  it("may be a site", () =>
    expect(node(root, { ...nx, "apps/web/vite.config.ts": "", "apps/web/index.html": "" })).toMatchObject({
      kind: "site",
      buildCommand: "npx nx build web",
    }));

  it("of several apps says how one of them is named", () =>
    expect(() => node(root, { ...web, "apps/api/project.json": "{}" })).toThrow(
      /Nx workspace of several apps \(web, api\): set buildCommand to npx nx build with/,
    ));

  it("never runs what a name may hide", () => {
    const hostile = ["a; id", "$(id)", "--help", "../x"];
    for (const name of hostile)
      expect(node(root, { ...web, "apps/web/project.json": JSON.stringify({ name }) })).toMatchObject({
        buildCommand: "npx nx build web",
      });
    const outputPath = "dist/$(id)";
    const project = JSON.stringify({ targets: { build: { options: { outputPath } } } });
    expect(node(root, { ...web, "apps/web/project.json": project })).toMatchObject({
      startCommand: "cd apps/web && exec npx next start",
    });
  });

  it("is built as its owner or its scripts say", () => {
    const scripts = { build: "nx build web", start: "next start apps/web" };
    expect(node({ ...root, scripts }, web)).toMatchObject({ buildCommand: "npm run build" });
    expect(node(root, web, { buildCommand: "make", startCommand: "x" })).toMatchObject({
      buildCommand: "make",
    });
  });
});
