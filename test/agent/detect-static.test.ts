import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Overrides } from "../../agent/image-build/detect/sources.ts";
import { readStaticRules } from "../../agent/image-build/detect/static-rules.ts";
import { isLeftOut } from "../../agent/image-build/dockerfile/static.ts";
import { computedMs, slowness } from "../support/computed.ts";
import { sourcesOf } from "../support/sources.ts";
import { dockerfileWith, plan, variables, type Files } from "../support/detected.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const dockerfile = dockerfileWith(variables);
const rules = (files: Files) => readStaticRules(sourcesOf(files), [""]);
const redirects = (text: string) => rules({ _redirects: text }).redirects;
const headers = (text: string) => rules({ _headers: text }).headers;

const nx = '{"devDependencies":{"nx":"22","vite":"7"}}';

/** What is served once the build has made these files, as its step in the Dockerfile takes them. */
function taken(files: Files, made: string[], overrides: Partial<Overrides> = {}): string[] {
  const folder = temporaryFolder();
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [path, text] of Object.entries(files)) write(path, text);
  // After the manifest, as the build comes after the source.
  const buildCommand = `until [ made -nt package.json ]; do touch made; done; ${made.map((path) => `mkdir -p ${dirname(path)} && echo > ${path}`).join("; ")}`;
  const [, step = "[]"] = /^RUN (?:--\S+ )*(\[.*\/srv\/output.*\])$/m.exec(
    dockerfile(files, { ...overrides, buildCommand }),
  )!;
  const [program = "", ...args] = JSON.parse(step.replaceAll("/srv/output", `${folder}/output`)) as string[];
  execFileSync(program, args, { cwd: folder });
  return readdirSync(join(folder, "output"), { recursive: true, encoding: "utf8" });
}

describe("a site of files", () => {
  it("has a Caddyfile in the form that Caddy itself writes", () =>
    expect(
      dockerfile({
        "index.html": "",
        _redirects: "/old/* /new/:splat 302\n/app/* /app.html 200!\n",
        _headers: "/*\n  X-Frame-Options: DENY\n  ! Server\n",
      }),
    ).toMatchSnapshot());

  it("is what its Staticfile says, in its folder and as one page", () => {
    const files = { Staticfile: "root: ./public/\nindex_fallback: true\n", "public/a.html": "" };
    expect(plan(files)).toEqual({ kind: "static", folder: "public", singlePage: true });
    expect(plan({ Staticfile: "pushstate: enabled", "index.html": "" })).toMatchObject({ singlePage: true });
    expect(() => plan({ Staticfile: "root: dist" })).toThrow(
      /folder dist does not exist .* root in Staticfile/,
    );
    expect(() => plan({ Staticfile: "root: ../a" })).toThrow(/Found neither/);
    const built = {
      "package.json": '{"scripts":{"build":"make"}}',
      Staticfile: "root: web/out\npushstate: enabled\n",
      "public/_redirects": "/a /b\n",
    };
    expect(plan(built)).toMatchObject({
      kind: "site",
      outputs: ["web/out", "dist", "build", "out", "_site", "public"],
      singlePage: true,
      rules: { redirects: [{ to: "/b" }] },
    });
    const atRoot = { "package.json": built["package.json"], _redirects: "/a /c\n" };
    expect(plan(atRoot)).toMatchObject({ rules: { redirects: [{ to: "/c" }] } });
    expect(plan({ ...built, ...atRoot })).toMatchObject({ rules: { redirects: [{ to: "/b" }] } });
    expect(plan(built, { outputDir: "x", singlePage: false })).toMatchObject({
      outputs: ["x"],
      singlePage: false,
    });
  });

  it("is taken from where the owner's command wrote it in that command's own step, whatever that ends with", () => {
    const files = { "package.json": '{"scripts":{"build":"vite build"}}' };
    const buildCommand = "cd web && npm run build # all";
    const steps = dockerfile(files, { buildCommand }).match(/^RUN .*(?:web|\/output).*$/gm);
    expect(steps).toHaveLength(1);
    expect(steps?.[0]).toContain(
      JSON.stringify(`(\n${buildCommand}\n) && ( for folder in dist`).slice(1, -1),
    );
  });

  it.each<[string, Files, string[], boolean]>([
    ["one page alone", {}, ["apps/web/dist/index.html", "apps/web/dist/assets/a.js"], true],
    ["one page alone, by Nx", { "nx.json": "{}", "package.json": nx }, ["dist/apps/web/index.html"], true],
    ["several pages", {}, ["dist/index.html", "dist/about/index.html"], false],
    ["a page of its own for what is not found", {}, ["dist/index.html", "dist/404.html"], false],
  ])(
    "whose app lies in a monorepo answers unknown paths with its page where the build left %s",
    (_, more, made, is) => {
      const files: Files = {
        "package.json": '{"scripts":{"build":"turbo build"},"devDependencies":{"turbo":"2"}}',
        "pnpm-workspace.yaml": "packages: [apps/*]\n",
        "turbo.json": "{}",
        "apps/web/package.json": "{}",
        ...more,
      };
      expect(taken(files, made).includes("200.html")).toBe(is);
      expect(taken(files, made, { singlePage: false })).not.toContain("200.html");
    },
  );

  it.each<[string, string, string[], boolean]>([
    ["fallback: 'app.html'", "svelte", ["build/app.html", "build/index.html"], true],
    ["fallback: 'index.html'", "svelte", ["build/index.html", "build/about.html"], true],
    ["fallback: '404.html'", "svelte", ["build/404.html", "build/index.html"], false],
    ["pages: 'build'", "svelte", ["build/index.html"], false],
    ["  prerender: true,", "router", ["build/client/__spa-fallback.html", "build/client/index.html"], true],
    [
      "  prerender: ['/about'],",
      "router",
      ["build/client/index.html", "build/client/about/index.html"],
      true,
    ],
  ])("answers unknown paths with the page that its framework makes for them: %s", (text, name, made, is) => {
    const [dependency, config] =
      name === "svelte"
        ? ["@sveltejs/kit", `adapter({ ${text} })`]
        : ["@react-router/dev", `export default {\n  ssr: false,\n${text}\n};`];
    const files: Files = {
      "package.json": JSON.stringify({ scripts: { build: "x" }, devDependencies: { [dependency]: "2" } }),
      [name === "svelte" ? "svelte.config.js" : "react-router.config.ts"]: config,
    };
    expect(taken(files, made).includes("200.html")).toBe(is);
    expect(dockerfile(files)).toContain("{path}/ /200.html");
    expect(taken(files, made, { singlePage: false })).not.toContain("200.html");
  });

  it("of a framework that makes pages has none for unknown paths, however many pages it has", () =>
    expect(
      taken(
        { "package.json": '{"scripts":{"build":"astro build"},"dependencies":{"astro":"5","vite":"7"}}' },
        ["dist/index.html"],
      ),
    ).toEqual(["index.html"]));

  it("has neither hidden files nor what lies outside of its folder", () => {
    const left = (path: string) => isLeftOut(path, "web/public");
    for (const path of ["web/public/.env", "web/x", "README.md", "web/public/a/.git"])
      expect(left(path)).toBe(true);
    for (const path of ["web", "web/public", "web/public/a", "web/public/.well-known/x"])
      expect(left(path)).toBe(false);
    expect(isLeftOut(".env", undefined)).toBe(true);
  });

  it("is told which files say what is not read", () => {
    expect(rules({ Caddyfile: "", "nginx.conf": "" }).notes).toEqual([
      expect.stringMatching(/^Not read: Caddyfile and nginx\.conf\. .*_redirects and _headers\.$/),
    ]);
    expect(rules({ _redirects: "/a /b Country=us\n/a https://x.example 200\n/a /:b\n" }).notes).toEqual([
      "_redirects has lines that are not read: /a /b Country=us; /a https://x.example 200; /a /:b.",
    ]);
    expect(rules({ _headers: "/a\n  X: {http.request.uri}\n" }).notes).toEqual([
      "_headers has a line that is not read: X: {http.request.uri}.",
    ]);
  });
});

describe("a redirect", () => {
  it.each<[string, object]>([
    ["/old /new", { path: "^/old/?$", to: "/new", status: 301, isForced: false }],
    ["/a.b/ https://x.example/c?d=1#e 308! # x", { path: "^/a[.]b/?$", status: 308, isForced: true }],
    ["/blog/:y/* /p/:splat/:y", { path: "^/blog/([^/]+)(?:/(.*))?$", to: "/p/{2}/{1}" }],
    ["/* /index.html 200", { path: "^(?:/(.*))?$", status: 200 }],
  ])("is read: %s", (line, expected) => expect(redirects(line)).toMatchObject([expected]));

  it.each([
    "/a",
    "old /new",
    "/a /b 418",
    "/a //\\x 301",
    '/a /b"',
    "/a /{env.TOKEN}",
    "/a /b'c",
    "/a*b /c",
    "/a /b 301 Language=en",
    "https://x.example/* /a",
    "/a ftp://x",
  ])("that is none is no part of the configuration: %s", (line) => expect(redirects(line)).toEqual([]));
});

it("headers are those of their path, and none that could be more than one", () => {
  expect(headers('/a/*\n  X-A: 1\n\tX-B: it\'s "b"\n# c\n/b\n  ! Server\n')).toEqual([
    {
      path: "^/a(?:/(.*))?$",
      headers: [
        ["X-A", "1"],
        ["X-B", 'it\'s "b"'],
      ],
    },
    { path: "^/b/?$", headers: [["Server", null]] },
  ]);
  for (const line of ["X A: 1", "X: {$HOME}", "X: a\\", "X", ": a", "X: é"])
    expect(headers(`/a\n  ${line}\n`)).toEqual([]);
});

it("no file of rules takes longer to read than in proportion to its length, or makes a command too long to run", () => {
  const long = 900_000;
  for (const filler of [
    "/",
    "/a ",
    "/a /b\n",
    "/*\n",
    " ",
    "\n",
    "/:a",
    "/a\n X: b\n",
    ":",
    "#",
    "pushstate: ",
    "/a\n  X: b\n",
    "/*\n" + "  X: b\n".repeat(9999),
    "*",
  ]) {
    const text = filler.repeat(long / filler.length);
    const before = computedMs();
    const found = dockerfile({ "index.html": "", _redirects: text, _headers: text, Staticfile: text });
    expect(computedMs() - before, filler).toBeLessThan(3000 * slowness());
    for (const line of found.split("\n")) expect(line.length).toBeLessThan(120_000);
  }
});
