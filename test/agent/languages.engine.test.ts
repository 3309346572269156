import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sendingStream } from "../../agent/docker/send-files.ts";
import { prepareBuild } from "../../agent/image-build/prepare.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { engine } from "../support/engine.ts";

const samples = fileURLToPath(new URL("../fixtures/languages/", import.meta.url));
const run = `berth-test-${process.pid}`;
const folders: string[] = [];
const images: string[] = [];
const containers: string[] = [];
const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();

beforeAll(
  () =>
    ensureImages([
      "node:24-bookworm-slim",
      "caddy:2",
      "debian:bookworm-slim",
      "python:3.13-slim-bookworm",
      "golang:1-bookworm",
      "php:8-apache",
      "composer:2",
      "ruby:3-slim-bookworm",
      "rust:1-bookworm",
      "elixir:slim",
      "denoland/deno:debian",
      "eclipse-temurin:21-jre",
      "maven:3-eclipse-temurin-21",
      "gradle:8-jdk21",
    ]),
  40 * 60_000,
);
afterAll(async () => {
  for (const id of containers) await engine.removeContainer(id);
  for (const image of images) await engine.removeImage(image);
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** Builds a sample, with files that hold their names, and starts it with the rights that a site has; answers the address it listens on. */
async function deploy(
  sample: string,
  rootDir: string | null = null,
  more: string[] = [],
): Promise<{ address: string; container: string; lines: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "berth-languages-"));
  folders.push(folder);
  cpSync(join(samples, sample), folder, { recursive: true });
  for (const name of more) writeFileSync(join(folder, name), name);
  // No step after the source is copied comes from an earlier run's cache.
  writeFileSync(join(folder, "run.txt"), `${run} ${Date.now()}`);
  const input = {
    siteId: "site_languages_test",
    rootDir,
    dockerfilePath: null,
    buildCommand: null,
    startCommand: null,
    env: [],
  };
  const prepared = await prepareBuild(folder, input, null);
  const tag = `berth-test/languages:${sample}-${process.pid}-${images.length}`;
  const lines: string[] = [];
  const building = engine.build({
    ...prepared,
    context: () => sendingStream(prepared.context()),
    tag,
    cacheNamespace: "test",
    labels: { "berth.test": "true" },
    signal: new AbortController().signal,
    onLine: (text) => lines.push(text),
  });
  await building.catch((error: unknown) => {
    throw new Error(lines.slice(-30).join("\n"), { cause: error });
  });
  images.push(tag);
  const rights = ["--init", "--cap-drop=ALL", "--security-opt=no-new-privileges"];
  const container = docker("run", "--detach", ...rights, "--env", "PORT=4321", tag);
  containers.push(container);
  const ip = docker("inspect", "--format", "{{.NetworkSettings.Networks.bridge.IPAddress}}", container);
  return { address: `http://${ip}:4321`, container, lines };
}

/** The first answer, once the app listens. */
async function get(address: string, container: string): Promise<{ status: number; text: string }> {
  for (const end = Date.now() + 20_000; ;)
    try {
      const response = await fetch(address, { signal: AbortSignal.timeout(2000) });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      if (Date.now() > end)
        throw new Error((await engine.lastLines(container, 30)).join("\n"), { cause: error });
      await new Promise((resume) => setTimeout(resume, 100));
    }
}

it.each([
  ["python", "hello from python"],
  ["python-wheels", "hello from a wheel"],
  ["go", "hello from go"],
  ["php", "hello from php"],
  ["ruby", "hello from ruby"],
  ["rust", "hello from rust"],
  ["elixir", "hello from elixir"],
  ["deno", "hello from deno"],
  ["script", "hello from a script"],
  ["go-file", "hello from a file of go"],
  ["node-file", "hello from a file of node"],
  ["python-bot", "hello from a bot"],
  ["java-maven", "hello from java"],
  ["java-gradle", "hello from java"],
])(
  "a %s repository without a Dockerfile is built, started and answers on PORT, not as root",
  async (sample, text) => {
    const { address, container } = await deploy(sample);
    expect(await get(address, container)).toEqual({ status: 200, text });
    expect(docker("exec", container, "id", "-u")).toBe("1000");
    // As apps do that keep a file beside their code.
    docker("exec", container, "touch", "/app/written");
  },
);

it("a Node app's next version shares the layer of its dependencies", async () => {
  const { address, container } = await deploy("node");
  expect(await get(address, container)).toEqual({ status: 200, text: "hello from node" });
  expect(docker("exec", container, "ls", "node_modules")).toBe("greeting");
  docker("exec", container, "touch", "/app/written", "/app/node_modules/written");
  const next = await deploy("node");
  expect(await get(next.address, next.container)).toEqual({ status: 200, text: "hello from node" });
  expect(next.lines).toContainEqual(expect.stringMatching(/ \/app\/node_modules \(cached\)$/));
});

it("packages of Node's that have to be compiled are, and what compiles them is not in the image", async () => {
  const { address, container, lines } = await deploy("native");
  expect(await get(address, container)).toEqual({ status: 200, text: "hello from one, and from two" });
  expect(docker("exec", container, "sh", "-c", "command -v python3 g++ || echo none")).toBe("none");
  // Package managers show nothing of it.
  expect(lines).toContainEqual(expect.stringMatching(/^Compiling \/app\/\S+ from source, .* minutes/));
  expect(lines).toContainEqual(expect.stringMatching(/^\[build \d+\/\d+\] took \d+\.\d s$/));
}, 300_000);

it("a PHP app answers for what is no file, also where that has a dot in its name", async () => {
  const { address, container } = await deploy("php");
  const page = { status: 200, text: "hello from php" };
  for (const path of ["/", "/about", "/sitemap.xml", "/livewire/livewire.js?id=1", "/%2e%2e/x.y"])
    expect(await get(`${address}${path}`, container)).toEqual(page);
  expect((await get(`${address}/robots.txt`, container)).text).toBe("User-agent: *\n");
  docker(
    "exec",
    container,
    "sh",
    "-c",
    "cd public && mkdir .well-known && echo 1 | tee .env > .well-known/known",
  );
  expect(await get(`${address}/.env`, container)).toEqual({
    status: 404,
    text: expect.stringContaining("<title>404 Not Found</title>"),
  });
  expect(await get(`${address}/.well-known/known`, container)).toEqual({ status: 200, text: "1\n" });
});

it("a PHP app is served as its .htaccess says, and told that its visitor came by HTTPS", async () => {
  const { address, container } = await deploy("php");
  const files = {
    ".htaccess":
      "IndexIgnore *\nOptions -MultiViews\nRewriteEngine On\nRewriteRule ^shop/(\\d+)$ shop.php?id=$1 [L]\nRewriteRule ^user/.*\\.yaml$ - [F]\nHeader set X-Theme dark\n",
    "shop.php":
      "<?php echo $_GET['id'], ' ', $_SERVER['HTTPS'] ?? 'off', ' ', getenv('HOME'), ' ', class_exists('Redis') ? 'redis' : '';",
    "user/a.yaml": "secret",
    "data/.htaccess": "Require all denied\n",
    "data/users.db": "secret",
    "old/.htaccess": "Order allow,deny\nDeny from all\n",
    "old/users.db": "secret",
  };
  const write = 'mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1"';
  for (const [path, text] of Object.entries(files))
    docker("exec", container, "sh", "-c", write, "sh", `/app/public/${path}`, text);
  const shop = await fetch(`${address}/shop/7`, { headers: { "x-forwarded-proto": "https" } });
  expect([shop.headers.get("x-theme"), await shop.text()]).toEqual(["dark", "7 on /app redis"]);
  expect((await get(`${address}/shop/7`, container)).text).toBe("7 off /app redis");
  for (const path of ["user/a.yaml", "data/users.db", "old/users.db", ".htaccess"])
    expect((await get(`${address}/${path}`, container)).text).not.toContain("secret");
  expect((await get(`${address}/data/users.db`, container)).status).toBe(403);
});

it("a PHP app that is stopped answers the request that it is at", async () => {
  const { address, container } = await deploy("php");
  const slow = "<?php touch('/tmp/begun'); while (!file_exists('/tmp/go')) usleep(10000); echo 'done';";
  docker("exec", container, "sh", "-c", 'printf %s "$1" > public/slow.php', "sh", slow);
  await get(address, container);
  const answer = fetch(`${address}/slow.php`);
  const begun = () => docker("exec", container, "sh", "-c", "ls /tmp").includes("begun");
  await expect.poll(begun).toBe(true);
  docker("kill", "--signal", "TERM", container);
  await expect.poll(() => fetch(address).then(String, () => "refused")).toBe("refused");
  docker("exec", container, "touch", "/tmp/go");
  expect(await (await answer).text()).toBe("done");
  expect(docker("wait", container)).toBe("0");
});

it("an app below the root of a workspace is installed with the packages that it shares", async () => {
  const { address, container } = await deploy("workspace", "apps/web");
  expect(await get(address, container)).toEqual({
    status: 200,
    text: "hello from a workspace, built as hello from a workspace",
  });
  expect(docker("exec", container, "pwd").trim()).toBe("/app/apps/web");
});

it("a module of go.work is built with the modules of the repository that it needs", async () => {
  const { address, container } = await deploy("go-work", "services/api");
  expect(await get(address, container)).toEqual({ status: 200, text: "hello from another module" });
  expect(docker("exec", container, "pwd").trim()).toBe("/app/services/api");
});

it("files as they are are served with or without .html, and with their own page for what is not there", async () => {
  const names = ["a?b.txt", "a%20b.txt", "a b.txt", "ü.txt", "#.txt", "100%.txt", "a[1].txt", "{path}.txt"];
  const { address, container } = await deploy("static", null, names);
  expect(await get(address, container)).toEqual({ status: 200, text: "<p>hello from files</p>\n" });
  // As mirrors of other sites name theirs.
  for (const name of names)
    expect(await get(`${address}/${encodeURIComponent(name)}`, container)).toEqual({
      status: 200,
      text: name,
    });
  for (const path of ["/about", "/about.html"])
    expect((await get(`${address}${path}`, container)).text).toBe("<p>about files</p>\n");
  expect(await get(`${address}/other`, container)).toEqual({ status: 404, text: "<p>no such file</p>\n" });
});

it("files are served as Staticfile, _redirects and _headers say, and Caddy's own lines stay out of the log", async () => {
  const { address, container } = await deploy("static-rules");
  expect(await get(address, container)).toEqual({ status: 200, text: "<p>hello from rules</p>\n" });
  const ask = async (path: string) => {
    const response = await fetch(`${address}${path}`, { redirect: "manual" });
    return {
      status: response.status,
      to: response.headers.get("location"),
      text: await response.text(),
      response,
    };
  };
  expect(await ask("/index.html")).toMatchObject({ status: 307, to: "/about" });
  expect(await ask("/old")).toMatchObject({ status: 301, to: "/about" });
  expect(await ask("/blog/2026/a/b")).toMatchObject({ status: 302, to: "/posts/2026/a/b" });
  expect(await ask("/assets/app.js")).toMatchObject({ status: 200, text: 'console.log("app");\n' });
  expect(await ask("/assets/other.js")).toMatchObject({ status: 301, to: "/other/other.js" });
  expect(await ask("/gone")).toMatchObject({ status: 404, text: "<p>lost</p>\n" });
  expect(await ask("/some/route")).toMatchObject({ status: 200, text: "<p>hello from rules</p>\n" });
  for (const path of ["/.env", "/_redirects", "/_headers"]) expect((await ask(path)).status).toBe(404);
  const { response } = await ask("/assets/app.js");
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'self'; report-to \"x\"",
    "cache-control": "public, max-age=31536000, immutable",
  });
  // Some versions of Caddy say this before they have read their log's level.
  const lines = await engine.lastLines(container, 30);
  expect(lines.filter((line) => !line.includes("using provided configuration"))).toEqual([]);
  docker("exec", container, "sh", "-c", "caddy fmt /etc/caddy/Caddyfile | diff - /etc/caddy/Caddyfile");
});

it("a site whose output folder nobody named is served from the one to which its build wrote a page", async () => {
  const { address, container } = await deploy("output");
  expect(await get(address, container)).toEqual({ status: 200, text: "<p>hello from what was built</p>\n" });
  // What SvelteKit and Nuxt call a page that routes itself answers for what is no file.
  expect(await get(`${address}/docs`, container)).toEqual({ status: 200, text: "<p>docs</p>\n" });
  expect(await get(`${address}/other`, container)).toEqual({ status: 200, text: "<p>routes itself</p>\n" });
});

it("a site that a framework builds is served from its output folder, each route by its one page", async () => {
  const { address, container } = await deploy("site");
  const index = await get(address, container);
  expect(index).toMatchObject({ status: 200, text: expect.stringContaining("hello from a build") });
  expect((await get(`${address}/assets/app.js`, container)).text).toContain("Started");
  expect(await get(`${address}/some/route`, container)).toEqual(index);
  expect(docker("exec", container, "ls", "/srv").split("\n")).toEqual(["assets", "index.html"]);
});

it("a site that is built for a path, as for GitHub Pages, is served there, and its root leads to it", async () => {
  const { address, container, lines } = await deploy("base");
  const index = await get(address, container);
  expect(index).toMatchObject({ status: 200, text: expect.stringContaining("/my-app/assets/app.js") });
  for (const query of ["", "?code=1"]) {
    const root = await fetch(`${address}/${query}`, { redirect: "manual" });
    expect([root.status, root.headers.get("location")]).toEqual([302, `/my-app/${query}`]);
  }
  expect(await get(`${address}/my-app/`, container)).toEqual(index);
  expect((await get(`${address}/my-app/assets/app.js?v=1`, container)).text).toBe('console.log("app");\n');
  // A page that is linked to where there is none says nothing of where the site is.
  expect((await get(`${address}/other/about.html`, container)).status).toBe(404);
  expect((await get(`${address}/my-app/.base/my-app`, container)).status).toBe(404);
  expect(lines.join("\n")).toContain("The site is built for the path /my-app/");
});
