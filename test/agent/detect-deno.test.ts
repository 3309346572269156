import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { JobError } from "../../agent/job.ts";
import { dockerfileWith, plan } from "../support/detected.ts";

const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);

const fresh = {
  "deno.json": JSON.stringify({
    imports: { fresh: "jsr:@fresh/core@2" },
    tasks: { dev: "vite", build: "vite build", start: "deno serve -A _fresh/server.js" },
  }),
  "deno.lock": "{}",
  "main.ts": "export const app = new App();",
};

describe("a Deno app", () => {
  it("of Fresh is installed by its lock file, built, and started by its task, on PORT", () =>
    expect(dockerfile(fresh)).toMatchSnapshot());

  it("is started by its file where it has no task that starts it for production", () => {
    const watch = { tasks: { start: "deno run -A --watch=static/ dev.ts", preview: "deno run -A main.ts" } };
    const files = { "deno.json": JSON.stringify(watch), "main.ts": "" };
    expect(plan(files)).toMatchObject({
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno task preview",
      entry: "main.ts",
    });
    expect(plan({ "deno.lock": "{}", "server.ts": "Deno.serve(() => new Response())" })).toMatchObject({
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno run --allow-all server.ts",
    });
    const vite = { build: "deno run -A npm:vite build", preview: "deno run -A npm:vite preview" };
    const serve = "deno run --allow-net --allow-read jsr:@std/http@1/file-server dist/";
    expect(() => plan({ "deno.json": JSON.stringify({ tasks: vite }) })).toThrow(/no task "start"/);
    expect(plan({ "deno.json": JSON.stringify({ tasks: { ...vite, serve } }) })).toMatchObject({
      buildCommand: "deno task build",
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno task serve",
    });
    expect(plan({ "deno.json": "{}", "main.ts": "export default { fetch() {} }" })).toMatchObject({
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno serve --allow-all main.ts",
    });
  });

  it("of Vite is not started by what its page loads", () => {
    const vite = { build: "tsc && vite build", preview: "vite preview" };
    const manifest = JSON.stringify({ scripts: vite, devDependencies: { vite: "7" } });
    const files = { "deno.lock": "{}", "index.html": "", "src/main.tsx": "" };
    expect(plan({ ...files, "package.json": manifest })).toMatchObject({ kind: "site", outputs: ["dist"] });
    const ofTasks = { ...files, "deno.json": JSON.stringify({ tasks: vite }) };
    expect(plan(ofTasks)).toMatchObject({
      buildCommand: "deno task build",
      startCommand: null,
      output: "dist",
      singlePage: null,
    });
    expect(dockerfile(ofTasks)).toMatch(/deno task build"[^]*for folder in dist;[^]*caddy run/);
    expect(plan({ ...ofTasks, "src/server.ts": "" })).toMatchObject({
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno run --allow-all src/server.ts",
    });
  });

  it("is served by Vite's preview only where that listens for others and nothing else serves it", () => {
    const preview = "vite preview --host --port $PORT";
    const files = { "deno.json": JSON.stringify({ tasks: { build: "vite build", preview } }) };
    expect(plan({ ...files, "src/main.ts": "" })).toMatchObject({
      buildCommand: "deno task build",
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno task preview",
    });
    expect(plan({ ...files, "main.ts": "" })).toMatchObject({ entry: "main.ts" });
    const manifest = JSON.stringify({ scripts: { build: "vite build" }, devDependencies: { vite: "7" } });
    expect(plan({ ...files, "package.json": manifest })).toMatchObject({ kind: "site" });
  });

  it("of Lume is the files that its build makes, whatever else is at its root", () => {
    const imports = { "lume/": "https://deno.land/x/lume@v3.0.4/" };
    const lume = "echo \"import 'lume/cli.ts'\" | deno run -A -";
    const tasks = { lume, build: "deno task lume", serve: "deno task lume -s" };
    const site = (more: object) => ({
      "deno.json": JSON.stringify({ imports, tasks: { ...tasks, ...more } }),
      "_config.ts": "",
      "mod.ts": "export default () => {};",
    });
    const made = { buildCommand: "deno task build", startCommand: null, output: "_site", entry: null };
    expect(plan(site({}))).toMatchObject(made);
    expect(plan(site({ dev: "LUME_LOGS=WARN deno task lume -s", start: "deno task dev" }))).toMatchObject(
      made,
    );
    expect(plan(site({ start: "deno run -A serve.ts" }))).toMatchObject({
      startCommand: "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno task start",
    });
    expect(plan({ "deno.json": JSON.stringify({ imports, tasks: { lume } }) })).toMatchObject({
      buildCommand: "deno task lume",
    });
    expect(dockerfile(site({}))).toMatch(/deno task build"\][^]*for folder in _site;[^]*-newermc deno\.json/);
  });

  it("is a site of files where its owner names their folder", () => {
    const files = { "deno.json": JSON.stringify({ tasks: { build: "deno run -A make.ts" } }), "main.ts": "" };
    expect(plan(files, { outputDir: "web/out", singlePage: true })).toMatchObject({
      kind: "deno",
      startCommand: null,
      output: "web/out",
      singlePage: true,
    });
    expect(dockerfile(files, { outputDir: "web/out" })).toMatch(/for folder in web\/out;/);
    expect(dockerfile(files, { outputDir: "web/out" })).not.toContain("-newermc");
  });

  it("has a configuration with comments, as its documentation writes them", () => {
    const text =
      '{\n  // "start": "no"\n  "tasks": { /* ours */ "start": { "command": "deno run a//b.ts" }, },\n  "imports": {"a": "https://deno.land/a",},\n}';
    expect(plan({ "deno.jsonc": text })).toMatchObject({ kind: "deno", installs: true });
    expect(() => plan({ "deno.json": "{" })).toThrow(/^deno\.json is not valid JSON/);
  });

  it("with a package.json runs its scripts itself", () => {
    const files = { ...fresh, "package.json": JSON.stringify({ scripts: { build: "vite build" } }) };
    expect(plan(files)).toMatchObject({ kind: "deno", assets: null, buildCommand: "deno task build" });
    const script = { scripts: { start: "deno run -A main.ts" } };
    expect(plan({ "deno.lock": "", "package.json": JSON.stringify(script) })).toMatchObject({ kind: "deno" });
  });

  it("beside a package.json that starts Node is that app's tool", () =>
    expect(
      plan({ "deno.json": "{}", "main.ts": "", "package.json": '{"scripts":{"start":"node ."}}' }),
    ).toMatchObject({ kind: "node" }));

  it("that nothing starts is refused with what to add", () => {
    expect(() => plan({ "deno.json": "{}" })).toThrow(JobError);
    expect(() => plan({ "deno.json": "{}" })).toThrow(/no task "start", main\.ts or server\.ts.*outputDir/);
  });

  it("runs on the release that it names", async () => {
    const asked = plan({ ...fresh, ".dvmrc": "v2.5.6\n" });
    const { images } = await chooseBaseImages(asked, () => Promise.resolve(true));
    expect(images.deno).toBe("denoland/deno:debian-2.5.6");
  });
});
