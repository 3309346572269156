import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { notesOf, type Overrides } from "../../agent/image-build/detect/sources.ts";
import { workspaceOf } from "../../agent/image-build/detect/workspace.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { dockerfile, node, variables, type Files } from "../support/detected.ts";
import { sourcesOf } from "../support/sources.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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

  it("also where the build bundles the server without its packages, of whatever kind it imports them", () => {
    const app = {
      scripts: {
        build: "npm run client && npm run server",
        start: "node dist/index.js",
        client: "vite build",
      },
      dependencies: { express: "5" },
      devDependencies: { vite: "7", esbuild: "0.25" },
    };
    const server = (script: string) => ({ ...app, scripts: { ...app.scripts, server: script } });
    expect(isPruned(server("esbuild server/index.ts --packages=external --bundle"), {})).toBe(false);
    expect(isPruned(server("esbuild server/index.ts --bundle"), {})).toBe(true);
  });

  it("also where it is the workspace's root that lists what starts the app or what its configuration loads", () => {
    const web = { scripts: { start: "cross-env A=1 next start" }, dependencies: { next: "15" } };
    const isLeft = (text: string, devDependencies: object, dependencies = {}) => {
      const app = sourcesOf({ "package.json": JSON.stringify(web), "next.config.js": text });
      const manifest = { workspaces: ["apps/*"], dependencies, devDependencies };
      const root = sourcesOf({ "package.json": JSON.stringify(manifest) });
      const sources = { ...app, workspace: workspaceOf(app, root, "apps/web") };
      const plan = detect(sources, { buildCommand: null, startCommand: null });
      return !generateDockerfile(plan, variables).includes("npm prune");
    };
    expect(isLeft("", { "cross-env": "7" })).toBe(true);
    expect(isLeft("require('next-pwa')", { "next-pwa": "5" })).toBe(true);
    expect(isLeft("", { "cross-env": "7" }, { "cross-env": "7" })).toBe(false);
    expect(isLeft("", { next: "15", eslint: "9" })).toBe(false);
  });

  it("also where the release command runs it, be that a setting or the Procfile's", () => {
    const app = {
      scripts: { start: "node .", migrate: "drizzle-kit migrate" },
      devDependencies: { prisma: "6", "drizzle-kit": "0.31" },
    };
    const isLeft = (files: Files, releaseCommand?: string) =>
      !dockerfile(app, files, { releaseCommand }).includes("npm prune");
    expect(isLeft({ Procfile: "release: npx prisma migrate deploy\n" })).toBe(true);
    expect(isLeft({}, "npm run migrate")).toBe(true);
    expect(isLeft({ Procfile: "release: npx prisma migrate deploy\n" }, "node migrate.js")).toBe(false);
    expect(isLeft({})).toBe(false);
  });

  it.each([
    "npm run start --workspace=apps/api",
    "npm -w api start",
    "pnpm --filter api start",
    "pnpm -F api start",
    "yarn workspace api start",
    "bun --filter api start",
  ])(
    "also where a package of the workspace starts, of whose scripts the root's tell nothing: %s",
    (start) => {
      const root = { workspaces: ["apps/*"], devDependencies: { eslint: "9" }, scripts: { start } };
      expect(isPruned(root, { "package-lock.json": "" })).toBe(false);
      const own = { ...root, scripts: { start: "node apps/api" } };
      expect(isPruned(own, { "package-lock.json": "" })).toBe(true);
    },
  );

  it("also where Vite or Nuxt is what serves the built app", () => {
    const devDependencies = { "@vitejs/plugin-react": "5" };
    const files = { "vite.config.ts": "import react from '@vitejs/plugin-react'" };
    const vite = { dependencies: { vite: "7", express: "5" }, devDependencies };
    const start = "node --run serve && vite preview --host";
    expect(isPruned({ ...vite, scripts: { start } }, files)).toBe(false);
    expect(isPruned({ ...vite, scripts: { start: "node server.js" } }, files)).toBe(true);
  });

  it.each([
    "ts-node src/index.ts",
    "node -r ts-node/register src/index.ts",
    "NODE_ENV=production node --loader=ts-node/esm src/index.ts",
    "nodemon",
    "npm run compile && next start",
  ])(
    "also where the start script compiles the app, by types and plug-ins that are listed there: %s",
    (start) => {
      const app = {
        scripts: { build: "echo", compile: "next build --turbopack", start },
        dependencies: { express: "5", "ts-node": "10", nodemon: "3", next: "16" },
        devDependencies: { typescript: "5", "@types/express": "5" },
      };
      expect(isPruned(app, {})).toBe(false);
    },
  );

  it.each(["node build", "node dist/ts-node.js", "react-router-serve ./build/server/index.js"])(
    "not where it starts what was built: %s",
    (start) => {
      const app = {
        scripts: { build: "react-router build", start },
        dependencies: { "@react-router/serve": "7", "ts-node": "10" },
        devDependencies: { typescript: "5" },
      };
      expect(isPruned(app, {})).toBe(true);
    },
  );

  it("also where Waku starts, which reads its own configuration", () => {
    const waku = {
      dependencies: { waku: "1", react: "19" },
      devDependencies: { "@vitejs/plugin-react": "5", tailwindcss: "4" },
    };
    const files = { "waku.config.ts": "import react from '@vitejs/plugin-react'" };
    expect(isPruned({ ...waku, scripts: { build: "waku build", start: "waku start" } }, files)).toBe(false);
    expect(isPruned({ ...waku, scripts: { build: "waku build", start: "waku start" } }, {})).toBe(true);
  });
});

it("Puppeteer finds a browser that runs in a container, where it is built and where it runs; not where it is there for tests", () => {
  const start = { scripts: { start: "node ." } };
  const text = dockerfile({ ...start, dependencies: { puppeteer: "24" } }, {});
  const stages = text.split(/^FROM node:.*\n/m).slice(1);
  const install = stages.map((stage) => stage.split("\n", 2).join("\n"));
  expect(install).toEqual([install[0], install[0]]);
  expect(install[0]).toMatch(
    /--no-install-recommends chromium [^]*--no-sandbox [^]* > \/etc\/chromium\.d\/container/,
  );
  for (const stage of stages) expect(stage).toMatch(/^ENV .*PUPPETEER_EXECUTABLE_PATH=\/usr\/bin\/chromium/m);
  expect(dockerfile({ ...start, devDependencies: { puppeteer: "24" } }, {})).not.toMatch(/chromium/i);
});

it.each([
  "react-app-rewired start",
  "react-scripts --openssl-legacy-provider start",
  "set PORT=3006 && react-scripts start",
  "export NODE_OPTIONS=--openssl-legacy-provider; react-scripts start",
  "env-cmd -f .env.local react-scripts start",
  "env-cmd ./.env craco start",
  "dotenv -e .env -- react-scripts start",
  `cross-env NODE_OPTIONS="--max-old-space-size=4096 --no-warnings" react-scripts start`,
  "rsbuild dev --open",
  "ember serve",
  "ember s",
  "quasar dev",
  "wrangler pages dev ./dist",
])("is built and served as files where its start script is a development server: %s", (start) =>
  expect(node({ scripts: { start, build: "x" } })).toMatchObject({ kind: "site" }),
);

it.each(["build:prod", "build:production"])("%s is a build script where no other is", (name) => {
  const vue = { scripts: { dev: "x", [name]: "x" }, devDependencies: { "@vue/cli-service": "4.5.0" } };
  expect(node(vue)).toMatchObject({ kind: "site", buildCommand: `npm run ${name}` });
  expect(node({ ...vue, scripts: { ...vue.scripts, build: "x" } })).toMatchObject({
    buildCommand: "npm run build",
  });
});

it("a build:prod that is none of Vue's or Vite's, or beside what starts the app, is left alone", () => {
  const image = { "build:prod": "docker build -t me/app ." };
  expect(node({ scripts: { start: "node server.js", ...image } }, { "server.js": "" })).toMatchObject({
    kind: "node",
    buildCommand: null,
  });
  expect(
    node({ scripts: { start: "node server.js", ...image }, devDependencies: { vite: "7" } }),
  ).toMatchObject({ kind: "node", buildCommand: null });
  expect(node({ scripts: image }, { "index.php": "" })).toMatchObject({
    kind: "php",
    assets: null,
  });
});

it.each<[string, string, string, boolean]>([
  ["@vue/cli-service", "4.4.4", "24", true],
  ["react-scripts", "^3.4.1", "17", true],
  ["webpack", "^4.46.0", "18", true],
  ["react-scripts", "^3.4.1", "16", false],
  ["react-scripts", "5.0.1", "24", false],
  ["react-scripts", ">=4", "24", false],
  ["react-scripts", "latest", "24", false],
])(
  "what bundles by webpack 4 is let use an older OpenSSL's digests: %s %s on Node %s",
  (name, version, major, isLet) => {
    const manifest = { scripts: { build: "x" }, devDependencies: { [name]: version } };
    const app = node(manifest, { ".nvmrc": major });
    const option = "--openssl-legacy-provider";
    expect(generateDockerfile(app, variables).includes(` NODE_OPTIONS="${option}"`)).toBe(isLet);
    expect(
      generateDockerfile(app, { ...variables, memoryMb: 2048 }).includes(
        ` NODE_OPTIONS="--max-old-space-size=1792 ${option}"`,
      ),
    ).toBe(isLet);
    expect(generateDockerfile(app, { ...variables, plain: ["NODE_OPTIONS"] })).not.toContain(option);
  },
);

it.each([
  ["npm install --prefix client && npm run build --prefix client", true],
  ["cd ./client && npm install && npm run build", true],
  ["yarn --cwd client build", true],
  ["npm run build:client", true],
  ["npm run build --prefix admin", false],
  ["cp -r client dist", false],
])("so is what a server's build bundles in a folder of its own, as in MERN apps: %s", (build, isLet) => {
  const scripts = { start: "node server", build, "build:client": "cd client && npm run build" };
  const manifestIn = (version: string) => JSON.stringify({ dependencies: { "react-scripts": version } });
  const files = { "client/package.json": manifestIn("4.0.3"), "admin/package.json": manifestIn("5.0.1") };
  expect(node({ scripts }, files)).toMatchObject({ kind: "node", isOfWebpack4: isLet });
  expect(node({ scripts: { start: "node server" } }, files, { buildCommand: build })).toMatchObject({
    isOfWebpack4: isLet && build !== "npm run build:client",
  });
});

it("Create React App is one page, also once it was ejected", () => {
  const scripts = { start: "node scripts/start.js", build: "node scripts/build.js" };
  expect(node({ scripts, dependencies: { "react-dev-utils": "12" } })).toMatchObject({
    kind: "site",
    outputs: ["build"],
    singlePage: true,
  });
  // Of another app it is what starts it.
  expect(node({ scripts })).toMatchObject({ kind: "node" });
});

describe("Prisma", () => {
  const app = { scripts: { build: "tsc", start: "node dist" }, dependencies: { "@prisma/client": "6" } };
  const prisma = { ...app, devDependencies: { prisma: "6" } };
  const schema = { "prisma/schema.prisma": "" };
  const generates = /COPY source\/ \.\/\n[^]*prisma generate"\]\n[^]*run build"\]\n/;

  it.each<[string, Files, string]>([
    ["npm", {}, "npx prisma generate"],
    ["pnpm", { "pnpm-lock.yaml": "" }, "pnpm exec prisma generate"],
    ["Yarn", { "yarn.lock": "" }, "yarn prisma generate"],
    ["Bun", { "bun.lock": "" }, "bunx prisma generate"],
  ])("has its client generated by %s before the build, where the schema is", (_, lock, command) => {
    expect(dockerfile(prisma, { ...schema, ...lock })).toContain(command);
    expect(dockerfile(prisma, { ...schema, ...lock })).toMatch(generates);
    expect(dockerfile(prisma, { "prisma.config.ts": "", ...lock })).toMatch(generates);
    for (const path of ["db/schema.prisma", "src/server/db/prisma/schema.prisma"])
      expect(
        dockerfile(prisma, {
          "prisma.config.ts": `export default { schema: "${path}" }`,
          "db/schema.prisma": "",
          ...lock,
        }),
      ).toMatch(generates);
  });

  it.each<[string, object, Files]>([
    [
      "the build makes the schema that its configuration names",
      prisma,
      { "prisma.config.ts": "export default defineConfig({ schema: './schema.prisma' })" },
    ],
    ["a script does it", { ...prisma, scripts: { ...app.scripts, build: "prisma generate && tsc" } }, schema],
    ["an install does", { ...prisma, scripts: { ...app.scripts, postinstall: "prisma generate" } }, schema],
    [
      "a script behind the build does",
      { ...prisma, scripts: { ...app.scripts, build: "npm run gen && tsc", gen: "prisma generate" } },
      schema,
    ],
    ["there is no schema", prisma, {}],
    ["its program is not installed", app, schema],
  ])("is left alone where %s", (_, manifest, files) =>
    expect(node(manifest, files)).toMatchObject({ generateCommand: null }),
  );

  it("is left to the owner's own command where that generates it", () => {
    const given = (buildCommand: string) => node(prisma, schema, { buildCommand });
    expect(given("npx prisma generate && make")).toMatchObject({ generateCommand: null });
    expect(given("make")).not.toMatchObject({ generateCommand: null });
  });
});

it("Astro's server listens where it is reached, whatever starts it", () => {
  const astro = { dependencies: { astro: "5", "@astrojs/node": "9" } };
  for (const scripts of [
    { build: "astro build" },
    { build: "astro build", start: "node dist/server/entry.mjs" },
  ])
    expect(dockerfile({ ...astro, scripts })).toMatch(/\nENV NODE_ENV=production PORT=3000 HOST=0\.0\.0\.0 /);
  expect(dockerfile({ scripts: { start: "node ." } })).not.toContain("HOST=");
});

it("Astro's server believes the ingress of how a visitor came, unless its configuration lists domains", () => {
  const astro = { scripts: { build: "astro build" }, dependencies: { astro: "7", "@astrojs/node": "11" } };
  const step = /npm run build"\]\nRUN (\["sh","-c",.*\])\n/.exec(dockerfile(astro))?.[1] ?? "[]";
  const [shell = "", ...args] = JSON.parse(step) as string[];
  // As Astro 5 and 7 write them.
  const manifests = [
    '{"assets":[],"buildFormat":"directory","checkOrigin":true,"allowedDomains":[],"key":"a"}',
    'deserializeManifest({"assets":[],"checkOrigin":true,"actionBodySizeLimit":1,"allowedDomains":[],"image":{}});',
  ];
  const listed = '{"checkOrigin":true,"allowedDomains":[{"hostname":"a.example"}]}';
  const folder = temporaryFolder();
  const file = (name: string) => join(folder, name, "a b.mjs");
  const names = ["dist/server/chunks", "dist/server", "node_modules/astro", "dist/listed"];
  for (const name of names) mkdirSync(join(folder, name), { recursive: true });
  names.forEach((name, at) => writeFileSync(file(name), manifests[at % 2] ?? ""));
  writeFileSync(file("dist/listed"), listed);
  execFileSync(shell, args, { cwd: folder });
  const read = names.map((name) => readFileSync(file(name), "utf8"));
  const trusting = manifests.map((text) => text.replace('"allowedDomains":[]', '"allowedDomains":[{}]'));
  expect(read).toEqual([...trusting, manifests[0], listed]);
  expect(dockerfile({ ...astro, dependencies: { astro: "7" } })).not.toContain("allowedDomains");
});

it("Angular's server answers at every domain of the site, and believes what the ingress tells of a visitor", () => {
  const angular = {
    scripts: { start: "ng serve", build: "ng build", "serve:ssr:app": "node dist/app/server/server.mjs" },
    dependencies: { "@angular/core": "22", "@angular/ssr": "22" },
  };
  expect(dockerfile(angular)).toMatch(
    /\nENV NODE_ENV=production PORT=3000 NG_ALLOWED_HOSTS=\* NG_TRUST_PROXY_HEADERS=x-forwarded-for,x-forwarded-host,x-forwarded-proto /,
  );
  const { "@angular/ssr": _, ...files } = angular.dependencies;
  expect(dockerfile({ ...angular, dependencies: files })).not.toContain("NG_ALLOWED_HOSTS");
});

it("Qwik's server believes the ingress that a visitor came by https, as its check of forms compares", () =>
  expect(
    dockerfile({
      scripts: { start: "node server/entry.express" },
      dependencies: { "@builder.io/qwik-city": "1" },
    }),
  ).toMatch(/\nENV NODE_ENV=production PORT=3000 .*PROTOCOL_HEADER=x-forwarded-proto/));

it("Auth.js answers at every domain of the site", () => {
  const answers = (dependencies: object) =>
    dockerfile({ scripts: { start: "next start" }, dependencies }).includes("AUTH_TRUST_HOST=true");
  for (const version of ["5.0.0-beta.31", "^5.0.0-beta.4", "beta"])
    expect(answers({ "next-auth": version })).toBe(true);
  expect(answers({ "@auth/express": "0.12" })).toBe(true);
  // It has one of its own, NEXTAUTH_URL, which this variable would override in many releases.
  expect(answers({ "next-auth": "^4.24.5", "@auth/core": "0.34" })).toBe(false);
  expect(answers({ "@auth/prisma-adapter": "2" })).toBe(false);
});

it.each<[string, object, Files, boolean]>([
  [
    "pnpm's catalog",
    { "next-auth": "catalog:" },
    { "pnpm-lock.yaml": "  next-auth@5.0.0-beta.30(react@19):" },
    true,
  ],
  [
    "pnpm's catalog",
    { "next-auth": "catalog:" },
    { "pnpm-lock.yaml": "  next-auth@4.24.11(react@19):" },
    false,
  ],
  [
    "a package of a workspace",
    { "@acme/auth": "workspace:*" },
    { "pnpm-lock.yaml": "  /next-auth@5.0.0-beta.4:" },
    true,
  ],
  [
    "a package of npm's workspace",
    {},
    { "package-lock.json": '"node_modules/next-auth": {\n "version": "5.0.0-beta.30"' },
    true,
  ],
  ["a package of Yarn's workspace", {}, { "yarn.lock": '"next-auth@npm:^5.0.0-beta.4":' }, true],
  [
    "Bun's catalog",
    { "next-auth": "catalog:auth" },
    { "bun.lock": '"next-auth": ["next-auth@5.0.0-beta.30", ""' },
    true,
  ],
  [
    "its own manifest, whatever else is installed",
    { "next-auth": "4.24.11" },
    { "yarn.lock": "next-auth@5.0.0" },
    false,
  ],
])("Auth.js is known by %s", (_, dependencies, files, isKnown) =>
  expect(
    dockerfile({ scripts: { start: "next start" }, dependencies }, files).includes("AUTH_TRUST_HOST=true"),
  ).toBe(isKnown),
);

it("frameworks send nothing about a build or an app to their authors, unless the owner says otherwise", () => {
  const next = { scripts: { build: "next build", start: "next start" }, dependencies: { next: "15" } };
  expect(dockerfile(next).match(/^ENV .*NEXT_TELEMETRY_DISABLED=1/gm)).toHaveLength(2);
  const given = { ...variables, plain: ["NEXT_TELEMETRY_DISABLED"] };
  const [build = ""] = generateDockerfile(node(next), given).split(/\nFROM /);
  expect(build).not.toContain("NEXT_TELEMETRY_DISABLED=1");
  const names = ["astro", "nuxt", "gatsby", "turbo", "@angular/cli", "storybook", "expo", "prisma"];
  for (const name of names)
    expect(dockerfile({ scripts: { start: "node ." }, devDependencies: { [name]: "1" } })).toMatch(
      /^ENV .*(?:TELEMETRY|ANALYTICS|CHECKPOINT)/m,
    );
});

it("Turborepo, started by whatever script, hides no variables of the site from the build and the app", () => {
  const turborepo = {
    workspaces: ["apps/*"],
    scripts: { build: "turbo build", start: "turbo start" },
    devDependencies: { turbo: "^2.6.0" },
  };
  expect(dockerfile(turborepo).match(/^ENV .*TURBO_ENV_MODE=loose/gm)).toHaveLength(2);
  const given = { ...variables, plain: ["TURBO_ENV_MODE"] };
  expect(generateDockerfile(node(turborepo), given).split(/\nFROM /)[0]).not.toContain(
    "TURBO_ENV_MODE=loose",
  );
});

it("VitePress has Git, which it asks when a page was last changed", () => {
  const manifest = { scripts: { build: "vitepress build" }, devDependencies: { vitepress: "1" } };
  expect(dockerfile(manifest)).toMatch(/AS build\n[^]* --no-install-recommends git ca-certificates /);
});

describe("SvelteKit whose configuration names an adapter is built for that, whatever else was installed:", () => {
  const kit = (files: Files, ...adapters: string[]) =>
    node(
      {
        scripts: { build: "vite build" },
        devDependencies: {
          "@sveltejs/kit": "2",
          ...Object.fromEntries(adapters.map((name) => [`@sveltejs/adapter-${name}`, "1"])),
        },
      },
      files,
    );
  const config = (name: string) => `import adapter from '@sveltejs/adapter-${name}';\n`;

  it("for files, though the template's own is left over", () => {
    const files = { "svelte.config.js": `// ${config("auto")}${config("static")}` };
    expect(kit(files, "auto", "static")).toMatchObject({ kind: "site", buildCommand: "npm run build" });
  });

  it("for a server, though it is named in Vite's configuration", () =>
    expect(kit({ "vite.config.ts": config("node") }, "static", "node")).toMatchObject({
      kind: "node",
      startCommand: "node build",
      buildCommand: "npm run build",
    }));

  it("for another host, which is told", () =>
    expect(kit({ "svelte.config.ts": config("vercel") }, "auto", "node", "vercel")).toMatchObject({
      kind: "site",
      adapter: { host: "Vercel" },
    }));

  it("and its server takes the visitor's protocol from the ingress, as its forms need on a site without TLS", () => {
    const ofIngress = /^ENV NODE_ENV=production .*PROTOCOL_HEADER=x-forwarded-proto/m;
    for (const name of ["node", "auto"])
      expect(generateDockerfile(kit({ "svelte.config.js": config(name) }, name), variables)).toMatch(
        ofIngress,
      );
    const files = kit({ "svelte.config.js": config("static") }, "auto", "static");
    expect(generateDockerfile(files, variables)).not.toContain("PROTOCOL_HEADER");
  });

  it("by package.json where it names none", () =>
    expect(kit({ "svelte.config.js": "export default {};" }, "auto")).toMatchObject({
      startCommand: "node build",
    }));
});

describe("Vite with Cloudflare's plugin", () => {
  const app = {
    scripts: { build: "vite build" },
    devDependencies: { vite: "7", "@cloudflare/vite-plugin": "1", wrangler: "4" },
  };
  const plugin =
    'import { cloudflare } from "@cloudflare/vite-plugin"\nexport default { plugins: [cloudflare()] }';
  const worker = '{\n  // "main": "x"\n  "name": "a",\n  "main": "./worker/index.ts",\n}';
  const files = { "index.html": "", "vite.config.ts": plugin, "wrangler.jsonc": worker };
  const refusal =
    'Found @cloudflare/vite-plugin in vite.config.ts, and main in wrangler.jsonc: the build makes a Cloudflare Worker, which does not run here, and its pages would be served without it. Build it without the plugin and add a "start" script that starts a server, or set outputDir to dist/client to serve the pages alone.';

  it.each<[string, object, Files]>([
    ["in jsonc", app, files],
    ["in a server's framework", { ...app, dependencies: { "@tanstack/react-start": "1" } }, files],
  ])("is refused where it builds a Worker beside the pages: %s", (_, manifest, those) =>
    expect(() => node(manifest, those)).toThrow(refusal),
  );

  it("is refused where wrangler.toml names the Worker", () =>
    expect(() =>
      node(app, {
        "index.html": "",
        "vite.config.ts": plugin,
        "wrangler.toml": 'name = "a"\nmain = "w.ts"\n',
      }),
    ).toThrow("main in wrangler.toml"));

  it.each<[string, object, Files, Partial<Overrides>]>([
    ["there are pages only", app, { ...files, "wrangler.jsonc": '{ "name": "a", "assets": {} }' }, {}],
    ["the plugin is not used", app, { ...files, "vite.config.ts": "export default {}" }, {}],
    ["the owner names the folder", app, files, { outputDir: "dist/client" }],
    ["a script starts a server", { ...app, scripts: { build: "vite build", start: "node s.js" } }, files, {}],
    ["the owner starts a server", app, files, { startCommand: "node s.js" }],
  ])("is built where %s", (_, manifest, those, overrides) =>
    expect(() => node(manifest, those, overrides)).not.toThrow(),
  );
});

it("Slidev's slides are served by their addresses with success, though its build copies its page to 404.html", () =>
  expect(
    node({ scripts: { build: "slidev build" }, dependencies: { "@slidev/cli": "52", vue: "3" } }),
  ).toMatchObject({ kind: "site", outputs: ["dist"], singlePage: true }));

describe("Expo", () => {
  const expo = { main: "expo-router/entry", dependencies: { expo: "54", "react-native-web": "0.21" } };

  it.each([
    ["as its generator makes it", { start: "expo start" }, "npx expo export --platform web"],
    ["started for the web", { start: "npx expo start --web" }, "npx expo export --platform web"],
    ["with a build of its own", { start: "expo start", build: "expo export" }, "npm run build"],
  ])("%s is a site of one page", (_, scripts, buildCommand) =>
    expect(node({ ...expo, scripts })).toMatchObject({
      kind: "site",
      buildCommand,
      outputs: ["dist"],
      singlePage: true,
    }),
  );

  it("is a site of many pages where app.json says so, which is its own file and no other host's", () => {
    const app = { "app.json": '{ "expo": { "web": { "output": "static" } } }' };
    expect(node({ ...expo, scripts: { start: "expo start" } }, app)).toMatchObject({ singlePage: false });
    expect(notesOf(sourcesOf(app))).toEqual([]);
    expect(notesOf(sourcesOf({ "app.json": '{ "name": "heroku" }' }))).toHaveLength(1);
  });
});

describe("TanStack Start", () => {
  const start = {
    scripts: { build: "vite build" },
    dependencies: { "@tanstack/react-start": "1", vite: "7" },
  };

  it("as its generator makes it is served by a server that is installed beside it", () => {
    expect(node(start)).toMatchObject({ kind: "node", server: "srvx@1.0.8" });
    const last = dockerfile(start).split(/^(?=FROM )/m)[1];
    expect(last).toMatch(
      /npm install --global --prefix \/opt\/server 'srvx@1\.0\.8'"\]\nENV PATH=\/opt\/server\/bin:\$PATH\n[^]*exec srvx --prod -s \.\.\/client dist\/server\/server\.js"/,
    );
  });

  it.each<[string, object, string]>([
    ["its own script", { scripts: { build: "vite build", start: "node server.js" } }, "node server.js"],
    [
      "its own srvx",
      { dependencies: { ...start.dependencies, srvx: "0.9" } },
      "srvx --prod -s ../client dist/server/server.js",
    ],
    [
      "Nitro",
      { dependencies: { ...start.dependencies, "@tanstack/nitro-v2-vite-plugin": "1" } },
      "node .output/server/index.mjs",
    ],
  ])("with %s is started by that", (_, more, startCommand) =>
    expect(node({ ...start, ...more })).toMatchObject({ startCommand, server: null }),
  );
});

it.each([
  ["^1.4.5", "turbo run build"],
  ["1", "turbo run build"],
  ["^2.0.0", "turbo run build --env-mode=loose"],
  [">=1", "turbo run build --env-mode=loose"],
  ["latest", "turbo run build --env-mode=loose"],
])("Turborepo %s is given no option that it does not know", (turbo, command) => {
  const app = sourcesOf({ "package.json": JSON.stringify({ scripts: { build: "b", start: "s" } }) });
  const root = sourcesOf({
    "package.json": JSON.stringify({ workspaces: ["apps/*"], devDependencies: { turbo } }),
    "turbo.json": "{}",
  });
  const sources = { ...app, workspace: workspaceOf(app, root, "apps/web") };
  expect(detect(sources, { buildCommand: null, startCommand: null })).toMatchObject({
    buildCommand: `/app/node_modules/.bin/${command}`,
  });
});

describe("an app that renders by a server of its own and has no start script", () => {
  const given = "cross-env NODE_ENV=production node server";
  const app = (build: object, name: string, script: string) =>
    node({ scripts: { dev: "node server", ...build, [name]: script }, devDependencies: { vite: "7" } });

  it.each<[string, string, string, object]>([
    ["Vite", "preview", given, { build: "npm run b", b: "vite build --ssr src/entry-server.js" }],
    ["Vike", "server:prod", "cross-env NODE_ENV=production node ./server", { build: "vike build" }],
    ["TanStack Router", "serve", "NODE_ENV=production tsx server/index.ts", { build: "vite build" }],
  ])(
    "is started by the script that does so in production, as in the template of %s",
    (_, name, script, build) =>
      expect(app(build, name, script)).toMatchObject({ kind: "node", startCommand: script }),
  );

  it.each([
    ["seed:prod", given],
    ["production", "NODE_ENV=production node esbuild.config.js"],
    ["preview", "vite preview"],
    ["prod", `npm run build && ${given}`],
  ])("is served as files where nothing says so: %s runs %s", (name, script) =>
    expect(app({ build: "vite build" }, name, script)).toMatchObject({ kind: "site" }),
  );
});

it("a package.json for tools only, above the apps, names their folders", () => {
  const tools = {
    scripts: { dev: 'concurrently "cd server && npm run dev"' },
    devDependencies: { husky: "9" },
  };
  const apps = {
    "client/package.json": "{}",
    "client/": "",
    "server/package.json": "{}",
    "public/index.html": "",
  };
  const problem = 'package.json has neither a "start" script nor a "main" file: add one, or set startCommand';
  expect(() => node(tools, apps)).toThrow(
    `${problem}, or set rootDir to the folder of the app (client, server).`,
  );
  expect(() => node(tools, { "public/index.html": "" })).toThrow(`${problem}.`);
});

describe("a Cloudflare Worker whose start script starts it for development", () => {
  const worker = (start: string, main: string, entry = main) =>
    node(
      { scripts: { start }, devDependencies: { wrangler: "4" } },
      { "wrangler.jsonc": `{ "main": "${main}" }`, [entry]: "" },
    );

  it.each([
    ["wrangler dev", "src/index.ts"],
    ["npx wrangler dev --port 3000", "src/index.js"],
  ])("is refused as one: %s, of %s", (start, main) =>
    expect(() => worker(start, main)).toThrow(/^Found wrangler\.jsonc: a Cloudflare Worker is not built/),
  );

  it("is no app beside it, and is started where it is made to listen", () => {
    expect(worker("wrangler dev", "worker.js", "src/index.js")).toMatchObject({
      startCommand: "node src/index.js",
    });
    expect(worker("wrangler dev --ip 0.0.0.0", "worker.js")).toMatchObject({ startCommand: "npm start" });
  });
});

it.each(["pnpx", "npx", "pnpm dlx"])(
  "srvx is there once the app starts where its start script has %s fetch it",
  (fetcher) => {
    const script = "srvx --prod -s ../client dist/server/server.js";
    const start = {
      scripts: { build: "vite build", start: `${fetcher} ${script}` },
      dependencies: { "@tanstack/react-start": "1" },
    };
    expect(node(start)).toMatchObject({ startCommand: script, server: expect.stringMatching(/^srvx@/) });
    expect(node({ ...start, devDependencies: { srvx: "1" } })).toMatchObject({
      startCommand: script,
      server: null,
      startsByDevelopment: true,
    });
  },
);
