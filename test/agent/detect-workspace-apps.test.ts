import { describe, expect, it } from "vitest";
import { serverNotes } from "../../agent/image-build/detect/workspace-apps.ts";
import { describe as inspected } from "../../agent/image-build/inspect/describe.ts";
import { isRead } from "../../agent/image-build/read-sources.ts";
import { dockerfile, node, type Files } from "../support/detected.ts";
import { sourcesOf } from "../support/sources.ts";

const pnpm = "packages:\n  - apps/*\n  - packages/*\n";
const manifest = (text: object) => JSON.stringify(text);
const next = manifest({
  scripts: { build: "next build", start: "next start" },
  dependencies: { next: "16" },
});
const vite = manifest({ scripts: { build: "vite build", start: "vite" }, devDependencies: { vite: "7" } });
const library = manifest({ scripts: { build: "tsc -p ." } });
/** As create-turbo makes it. */
const servers: Files = {
  "pnpm-workspace.yaml": pnpm,
  "apps/docs/package.json": next,
  "apps/web/package.json": next,
  "packages/eslint-config/package.json": "{}",
  "packages/ui/package.json": library,
};
const root = (build: string, more: object = {}) => ({
  private: true,
  scripts: { build, ...more },
  devDependencies: { turbo: "2" },
});
const refusal =
  "Found a workspace whose root builds its apps and starts none: set rootDir to the one to deploy (apps/docs, apps/web), or set startCommand.";

describe("the root of a workspace", () => {
  it.each(["turbo start", "turbo run start", "pnpm -r --parallel start", "npm run start --workspaces"])(
    "that starts several apps, which cannot share one port, is refused before the build, with their names: %s",
    (start) => {
      const whole = root("turbo build", { start });
      expect(() => node(whole, servers)).toThrow(
        "Found a workspace whose root starts several apps, of which one can listen on the site's port: set rootDir to the one to deploy (apps/docs, apps/web), or set startCommand.",
      );
      const startCommand = "npm start --workspace=apps/web";
      expect(node(whole, servers, { startCommand })).toMatchObject({ kind: "node", startCommand });
      expect(node(whole, { ...servers, Procfile: "web: node a.js" })).toMatchObject({ kind: "node" });
    },
  );

  it("that starts one app is started", () => {
    const { "apps/docs/package.json": _, ...one } = servers;
    expect(node(root("turbo build", { start: "turbo start" }), one)).toMatchObject({ kind: "node" });
    const named = root("turbo build", { start: "turbo start --filter=web" });
    expect(node(named, servers)).toMatchObject({ kind: "node" });
  });

  it.each([
    "turbo run build",
    "turbo build",
    "npx turbo run build --concurrency=2",
    "pnpm exec turbo build",
    "nx run-many -t build",
    "lerna run build",
    "pnpm -r build",
    "pnpm run -r build",
    "pnpm --recursive run build",
    "npm run build --workspaces --if-present",
    "npm run build --workspaces",
    "yarn workspaces foreach -A run build",
  ])(
    "that only builds apps of which each is a server is refused before the build, with their names: %s",
    (build) => expect(() => node(root(build), servers)).toThrow(refusal),
  );

  it.each<[string, object]>([
    ["@tanstack/react-start", { build: "vite build" }],
    ["nuxt", { build: "nuxt build" }],
    ["@sveltejs/adapter-auto", { build: "vite build" }],
    ["express", { build: "vite build --ssr", preview: "NODE_ENV=production node server" }],
  ])(
    "that builds an app of %s, which its framework starts without a script, counts it as a server",
    (name, scripts) => {
      const web = manifest({ scripts, dependencies: { [name]: "1" }, devDependencies: { vite: "7" } });
      expect(() => node(root("turbo run build"), { ...servers, "apps/web/package.json": web })).toThrow(
        refusal,
      );
      const mixed = { ...servers, "apps/docs/package.json": vite, "apps/web/package.json": web };
      expect(serverNotes(node(root("turbo run build"), mixed))).toMatchObject([
        expect.stringContaining("deploy apps/web as a site"),
      ]);
    },
  );

  it("is started as its owner says, or built by the owner's command", () => {
    const startCommand = "npm start --workspace=apps/web";
    expect(node(root("turbo build"), servers, { startCommand })).toMatchObject({
      kind: "node",
      startCommand,
    });
    const buildCommand = "turbo build && cp -r apps/web/out dist";
    expect(node(root("turbo build"), servers, { buildCommand })).toMatchObject({
      kind: "site",
      buildCommand,
    });
  });

  it.each<[string, object, Files]>([
    ["its script does more", root("turbo build && node collect.js"), {}],
    ["its script builds some of them", root("turbo build --filter=web"), {}],
    ["more is run after its script", root("turbo build", { postbuild: "node collect.js" }), {}],
    ["a folder that may be served is there", root("turbo build"), { "public/": "" }],
    ["one app is a folder of pages", root("turbo build"), { "apps/web/package.json": vite }],
    [
      "one app is exported",
      root("turbo build"),
      { "apps/docs/next.config.mjs": "export default {\n  output: 'export',\n};\n" },
    ],
    [
      "one app of SvelteKit's template is exported by another adapter",
      root("turbo build"),
      {
        "apps/web/package.json": manifest({
          scripts: { build: "vite build" },
          devDependencies: {
            "@sveltejs/kit": "2",
            "@sveltejs/adapter-auto": "7",
            "@sveltejs/adapter-static": "3",
          },
        }),
        "apps/web/svelte.config.js": "import adapter from '@sveltejs/adapter-static';\n",
      },
    ],
    [
      "nobody knows what a package builds",
      root("turbo build"),
      { "packages/ui/package.json": manifest({ scripts: { build: "node build.js" } }) },
    ],
  ])("is built where a page may come of it, and names the apps if none does: %s", (_, made, files) => {
    expect(Object.keys(files).filter((file) => !file.endsWith("/") && !isRead(file))).toEqual([]);
    expect(node(made, { ...servers, ...files })).toMatchObject({ kind: "site" });
    expect(dockerfile(made, { ...servers, ...files })).toContain(
      "set rootDir to the folder of the app that does (apps/docs, apps/web), or set startCommand.",
    );
  });

  it("whose pages are served names the servers that are not, with how to deploy them", () => {
    const api = manifest({ scripts: { build: "tsc", start: "node dist/main.js" } });
    const mixed = {
      "pnpm-workspace.yaml": pnpm,
      "apps/web/package.json": vite,
      "apps/api/package.json": api,
    };
    const note =
      "The workspace's pages are served, and no server of it is started: deploy apps/api as a site of its own, with that folder as rootDir.";
    expect(serverNotes(node(root("turbo build"), mixed))).toEqual([note]);
    const files = { ...mixed, "package.json": manifest(root("turbo build")) };
    const extra = { dockerfile: null, examples: [], prisma: null };
    expect(inspected(sourcesOf(files), extra).notes).toContain(note);
    const { "apps/api/package.json": _, ...pages } = mixed;
    expect(serverNotes(node(root("turbo build"), pages))).toEqual([]);
  });

  it("with nothing that looks like an app, and one with a framework of its own, name none", () => {
    const without = { "pnpm-workspace.yaml": pnpm, "packages/ui/package.json": library };
    expect(dockerfile(root("turbo build"), without)).toContain("folder of the app that does, or set");
    const own = { ...root("vite build"), devDependencies: { vite: "7" } };
    expect(dockerfile(own, servers)).toContain("folder of the app that does, or set");
  });
});
