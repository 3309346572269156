import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { launch, leftovers, plainServer, remove, Repository, type Files } from "./service.ts";

/** Repositories that attack, mislead or break: each ends FAILED with a sentence for its owner, and nothing of it stays. */
type Hostile = {
  name: string;
  files: Files;
  reason: RegExp;
  settings?: Record<string, unknown>;
  /** Before the commit, in the work tree. */
  prepare?: (directory: string) => void;
};

const base = "FROM node:24-bookworm-slim\n";
const dockerfile = (...lines: string[]): Files => ({
  Dockerfile: base + lines.map((line) => `${line}\n`).join(""),
});
const app = (source: string): Files => ({ ...plainServer("x"), "server.js": source });

const hostile: Hostile[] = [
  { name: "no app at all", files: { "notes.txt": "hello" }, reason: /Dockerfile.*package\.json|rootDir/ },
  {
    name: "a package.json that is no JSON",
    files: { "package.json": "{ name:" },
    reason: /package\.json is not valid JSON/,
  },
  { name: "a package.json that starts nothing", files: { "package.json": "{}" }, reason: /start/ },
  {
    name: "a Dockerfile that is no Dockerfile",
    files: { Dockerfile: "hello world\n" },
    reason: /build failed/i,
  },
  {
    name: "a base image that does not exist",
    files: { Dockerfile: "FROM berth-no-such-image:9\n" },
    reason: /berth-no-such-image/,
  },
  {
    name: "another tenant's image as its base",
    files: { Dockerfile: "FROM berth-sites/other:dep_0\n" },
    reason: /The image berth-sites\/other:dep_0, which the Dockerfile builds on, could not be pulled/,
  },
  {
    name: "a foreign BuildKit frontend",
    files: { Dockerfile: `# syntax=evil.invalid/frontend:1\n${base}` },
    reason: /asks for the syntax evil\.invalid\/frontend:1/,
  },
  { name: "a build step that fails", files: dockerfile("RUN exit 7"), reason: /exited with code 7/ },
  {
    name: "a site's build command that fails",
    files: { "package.json": `{"scripts":{"build":"node -e 'process.exit(3)'"}}`, "src/x.txt": "x" },
    settings: { buildCommand: "cd src && npm run build # the site", outputDir: "dist" },
    reason: /^The build failed: "cd src && npm run build # the site" exited with code 3\./,
  },
  {
    name: "a site's build command that makes no page",
    files: { "package.json": `{"scripts":{"build":"node -e 0"}}` },
    settings: { outputDir: "dist" },
    reason: /^The build left an index\.html in none of: dist\./,
  },
  {
    name: "a build that never ends",
    files: dockerfile("RUN sleep 100000"),
    reason: /took more than 3 minutes/,
  },
  {
    name: "a fork bomb in its build",
    // Of the shell, whose processes cost a fifth of Node's. One without bounds would build.
    files: dockerfile("RUN n=0; while [ $((n+=1)) -lt 20000 ]; do sleep 300 & done"),
    // Whichever of its bounds it meets first.
    reason: /build failed|The build was killed/i,
  },
  {
    name: "a build that eats memory",
    // In large pages: builds get little of busy processors, and small pages would take most of its time limit.
    files: dockerfile(
      "ENV GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
      `RUN node --max-old-space-size=64000 -e "const a=[];for(;;){const b=Buffer.alloc(1e8);for(let i=0;i<1e8;i+=4096)b[i]=1;a.push(b)}"`,
    ),
    reason: /used more than the 1024 MB of memory a build has/,
  },
  {
    name: "a build that looks for the engine's socket and the host's files",
    files: dockerfile("RUN test -S /var/run/docker.sock || test -e /proc/1/root/etc/berth || exit 3"),
    reason: /exited with code 3/,
  },
  {
    name: "a Dockerfile that is a link to the host's files",
    files: {},
    prepare: (directory) => symlinkSync("/etc/passwd", join(directory, "Dockerfile")),
    reason: /Dockerfile|does not exist/,
  },
  {
    name: "a Dockerfile that is a link to a device without an end",
    files: {},
    prepare: (directory) => symlinkSync("/dev/zero", join(directory, "Dockerfile")),
    reason: /Dockerfile|does not exist/,
  },
  {
    name: "a Dockerfile that is a link out of the repository by parents",
    files: {},
    prepare: (directory) => symlinkSync("../../../../../../../../etc/passwd", join(directory, "Dockerfile")),
    reason: /Dockerfile|does not exist/,
  },
  // Git itself neither adds nor fetches a .gitmodules that is a link.
  ...[".dockerignore", ".gitattributes"].flatMap((file) =>
    ["/dev/zero", "/proc/kmsg", "../../etc/passwd"].map((target) => ({
      name: `${file} as a link to ${target}, and a build that fails`,
      files: dockerfile("RUN exit 7"),
      prepare: (directory: string) => symlinkSync(target, join(directory, file)),
      // Refused for the link, or built without it.
      reason: new RegExp(`exited with code 7|${file.replace(".", "\\.")}`),
    })),
  ),
  {
    name: "a root folder that leads out of the repository",
    files: plainServer("x"),
    prepare: (directory) => symlinkSync("/etc", join(directory, "out")),
    settings: { rootDir: "out" },
    reason: /folder out does not exist/,
  },
  {
    name: "submodules",
    files: { ...plainServer("x"), ".gitmodules": '[submodule "a"]\n\tpath = a\n\turl = file:///etc\n' },
    reason: /submodules/,
  },
  {
    name: "files that Git LFS keeps",
    files: {
      ...plainServer("x"),
      ".gitattributes": "*.bin filter=lfs\n",
      "model.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
    },
    reason: /model\.bin is kept by Git LFS/,
  },
  { name: "an app that ends at once", files: app("process.exit(0);\n"), reason: /exited with code 0/ },
  {
    name: "an app that crashes",
    files: app("throw new Error('no database');\n"),
    reason: /exited with code 1.*no database/s,
  },
  {
    name: "an app that eats memory before it answers",
    files: app("const a = []; for (;;) a.push(Buffer.alloc(1e7, 1));\n"),
    reason: /more memory than its pack has/,
  },
  {
    name: "an app that never listens",
    files: app("setInterval(() => {}, 1000);\n"),
    reason: /Nothing listens on port 3000/,
  },
  {
    name: "an app on the loopback address only",
    files: app("require('node:http').createServer((q, s) => s.end()).listen(3000, '127.0.0.1');\n"),
    reason: /listens on 127\.0\.0\.1:3000 only/,
  },
  {
    name: "an app on another port",
    files: app("require('node:http').createServer((q, s) => s.end()).listen(8123);\n"),
    reason: /8123/,
  },
  {
    name: "an app whose health check fails",
    files: app(
      "require('node:http').createServer((q, s) => { s.statusCode = 500; s.end(); }).listen(3000);\n",
    ),
    settings: { healthCheckPath: "/health" },
    reason: /health check \/health did not succeed/,
  },
  {
    name: "a start command that does not exist",
    files: plainServer("x"),
    settings: { startCommand: "no-such-program" },
    reason: /exited with code 127/,
  },
];

it("there are at least twenty of them", () => expect(hostile.length).toBeGreaterThanOrEqual(20));

describe.concurrent("a hostile repository with", () => {
  it.each(hostile)(
    "$name ends FAILED, says why, and leaves nothing",
    async ({ files, prepare, settings, reason }) => {
      const repository = new Repository({ "README.md": "hostile", ...files }, prepare);
      const site = await launch({ githubUrl: repository.address, ...settings });
      expect([site.status, site.latestDeployment?.error]).toEqual(["FAILED", expect.stringMatching(reason)]);
      expect(leftovers(site.id)).toEqual([]);
      await remove(site.id);
      repository.remove();
    },
  );
});
