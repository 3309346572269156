import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openSourceInspection, type InspectSource } from "../../agent/image-build/inspect/index.ts";
import { Readers } from "../../agent/image-build/readers.ts";
import { Turns } from "../../agent/image-build/inspect/turns.ts";
import { SourceInspection } from "../../protocol/api/sources.ts";
import { formatId } from "../../protocol/ids.ts";
import { startGitServer, type GitServer } from "../../scripts/lib/git-server.ts";
import { git } from "../support/git.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const languages = join(import.meta.dirname, "../fixtures/languages");

// Git runs by the dozen, on machines that do other things as well.
vi.setConfig({ testTimeout: 180_000 });

const accountId = formatId("account", 1, new Uint8Array(10));
const root = temporaryFolder();
const workDirectory = temporaryFolder();
let readers: Readers;
let server: GitServer;
let inspectSource: InspectSource;

beforeAll(async () => {
  readers = new Readers(join(root, "readers"));
  server = await startGitServer(root);
  inspectSource = inspectorOf([`127.0.0.1:${server.port}`]);
});
afterEach(() => {
  // Whatever was asked.
  expect(readdirSync(workDirectory)).toEqual([]);
});
afterAll(() => server.close());

const inspectorOf = (insecureGitHosts: string[]) =>
  openSourceInspection({
    workDirectory,
    readers,
    settings: {
      buildCaFile: null,
      insecureGitHosts,
      drainSeconds: 1,
      drainMaxSeconds: 1,
      probationSeconds: 0,
    },
  });

let made = 0;
/** A repository that is served; answers its path on the server. */
function repository(
  fill: ((folder: string) => void) | Record<string, string>,
  branches: string[] = [],
): string {
  const name = `owner/r${++made}`;
  const folder = join(root, `${name}.git`);
  mkdirSync(folder, { recursive: true });
  git(folder, "init", "--quiet", "--initial-branch=main");
  if (typeof fill === "function") fill(folder);
  else
    for (const [path, text] of Object.entries(fill)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  git(folder, "add", "--all", "--force");
  git(folder, "commit", "--quiet", "--allow-empty", "-m", "x");
  for (const branch of branches) git(folder, "branch", branch);
  return `${name}.git`;
}

type Asked = Parameters<InspectSource>[0];
async function inspected(
  name: string,
  {
    rootDir = null,
    timeoutMs = 20_000,
    ...source
  }: Partial<Asked["source"]> & Partial<Omit<Asked, "source">> = {},
) {
  const address = `127.0.0.1:${server.port}/${name}`;
  const asked: Asked = {
    kind: "source",
    accountId,
    source: { address, branch: null, token: null, ...source },
    rootDir,
    timeoutMs,
  };
  return SourceInspection.parse(await inspectSource(asked, new AbortController().signal));
}

const nextApp = {
  "package.json": JSON.stringify({
    scripts: { build: "next build", start: "next start" },
    dependencies: { next: "15.0.0", react: "19.0.0", ioredis: "5.0.0" },
    engines: { node: "22" },
  }),
  "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
  ".env.example":
    "# The database\nDATABASE_URL=postgres://u:p@localhost/db\nexport API_KEY=\n#OPTIONAL=1\nnot a line\n",
  "app/[slug]/page.tsx": "export default () => null",
  "netlify.toml": "",
};

describe("a repository is read, and", () => {
  it("told with language, framework, versions, commands, port, variables, databases and branches", async () => {
    const name = repository(nextApp, ["dev", "feature/a"]);
    expect(await inspected(name)).toMatchObject({
      reachable: true,
      commit: expect.stringMatching(/^[0-9a-f]{40}$/) as string,
      branch: "main",
      defaultBranch: "main",
      branches: ["main", "dev", "feature/a"],
      builder: "detected",
      language: "Node.js",
      languageVersion: "22",
      framework: "Next.js",
      packageManager: expect.stringMatching(/^pnpm/) as string,
      isStatic: false,
      installCommand: "pnpm install --frozen-lockfile",
      buildCommand: expect.stringContaining("build") as string,
      startCommand: expect.stringContaining("start") as string,
      port: 3000,
      variables: ["DATABASE_URL", "API_KEY", "OPTIONAL"],
      databases: ["postgresql", "redis"],
      notes: [expect.stringContaining("netlify.toml") as string],
      problem: null,
    });
    expect((await inspected(name, { branch: "dev" })).branch).toBe("dev");
  });

  it("told with the sentence that its deployment would fail with, where it cannot be built as it is", async () => {
    const found = await inspected(repository({ "stack.yaml": "", "README.md": "" }));
    expect(found).toMatchObject({ reachable: true, builder: null, port: null });
    expect(found.problem).toContain("stack.yaml");
  });

  it("told with the folders of its apps, one of which is read with the workspace around it", async () => {
    const name = repository({
      "package.json": JSON.stringify({ private: true, workspaces: ["apps/*"] }),
      "package-lock.json": "{}",
      "apps/web/package.json": JSON.stringify({
        scripts: { start: "node ." },
        dependencies: { express: "5" },
      }),
      "apps/docs/index.html": "",
    });
    const whole = await inspected(name);
    expect(whole.rootDirs.toSorted()).toEqual(["apps/docs", "apps/web"]);
    expect(whole.problem).toContain("set rootDir");
    expect(await inspected(name, { rootDir: "apps/web" })).toMatchObject({
      framework: "Express",
      installCommand: "npm ci",
      problem: null,
    });
    expect((await inspected(name, { rootDir: "apps/none" })).problem).toMatch(
      /folder apps\/none does not exist/,
    );
  });

  it("told without the folders in which an app at its root has its pages and templates", async () => {
    const name = repository({
      "package.json": JSON.stringify({
        scripts: { build: "react-scripts build" },
        dependencies: { "react-scripts": "5" },
      }),
      "public/index.html": "",
      "admin/package.json": "{}",
    });
    expect(await inspected(name)).toMatchObject({ rootDirs: ["admin"], problem: null });
  });

  it("told what its Dockerfile leaves unread, as the deployment's log tells it", async () => {
    const { notes } = await inspected(
      repository({
        Dockerfile: "FROM scratch\n",
        Procfile: "web: bin/serve\nrelease: bin/migrate\nworker: bin/work\n",
        "render.yaml": "",
      }),
    );
    expect(notes).toEqual([
      expect.stringMatching(/^The Procfile is not read, .* releaseCommand/),
      expect.stringContaining("render.yaml"),
    ]);
  });

  it("told with the port that its Dockerfile exposes", async () => {
    const name = repository({
      Dockerfile: "FROM scratch\nEXPOSE 8080/tcp\n",
      "prisma/schema.prisma": `provider = "mysql"`,
    });
    expect(await inspected(name)).toMatchObject({
      builder: "dockerfile",
      port: 8080,
      databases: ["mysql"],
      problem: null,
    });
  });

  it.each([
    ["that the image has, not a stage before it", "FROM a AS dev\nEXPOSE 5173\nFROM b\nEXPOSE 80\n", 80],
    [
      "of the stage that it is made from",
      "FROM a AS base\nEXPOSE 8000\nFROM b\nFROM --platform=x BASE AS web",
      8000,
    ],
    ["of TCP", "FROM a\nEXPOSE 53/udp \\\n  8080 9090\nEXPOSE 9091\n", 8080],
    ["that is no text of a file", "FROM a\nRUN cat <<EOF > /x\nEXPOSE 99\nEOF\nEXPOSE 80\n", 80],
    ["that is a number", "FROM a\nEXPOSE $PORT\n", 3000],
  ])("told with the port %s", async (_, Dockerfile, port) =>
    expect(await inspected(repository({ Dockerfile }))).toMatchObject({ port }),
  );

  it.each(readdirSync(languages))("found to be what is built of it: %s", async (fixture) => {
    const from = join(languages, fixture);
    const found = await inspected(repository((folder) => cpSync(from, folder, { recursive: true })));
    expect(found.reachable).toBe(true);
    expect(found.builder ?? found.problem).not.toBeNull();
  });

  it("read within five seconds where it holds 100 MB, whose files are not fetched", async () => {
    const name = repository((folder) => {
      for (const [path, text] of Object.entries({ "package.json": nextApp["package.json"] }))
        writeFileSync(join(folder, path), text);
      mkdirSync(join(folder, "assets"));
      for (let file = 0; file < 100; file++)
        writeFileSync(join(folder, "assets", `${file}.bin`), randomBytes(1024 * 1024));
    });
    const small = repository((folder) =>
      writeFileSync(join(folder, "package.json"), nextApp["package.json"]),
    );
    const tookMs = async (repository: string) => {
      const before = performance.now();
      expect(await inspected(repository)).toMatchObject({ framework: "Next.js", problem: null });
      return performance.now() - before;
    };
    expect(await tookMs(name)).toBeLessThan(Math.max(5000, 10 * (await tookMs(small))));
  });
});

describe("a repository that cannot be read is told of:", () => {
  it.each([
    ["one that does not exist", () => ["owner/none.git", {}], /does not exist, or is private/],
    [
      "a branch that does not exist",
      () => [repository({}), { branch: "none" }],
      /branch or tag none does not exist/,
    ],
    ["a port", () => ["", { address: "127.0.0.1:1/owner/repo" }], /port 443 only/],
    ["a private address", () => ["", { address: "localhost/owner/repo" }], /not on a public address/],
  ] as [string, () => [string, Partial<Asked["source"]>], RegExp][])("%s", async (_, asked, told) => {
    const [name, source] = asked();
    const found = await inspected(name, source);
    expect(found).toMatchObject({ reachable: false, branches: [], builder: null });
    expect(found.problem).toMatch(told);
  });

  it("one without a commit", async () => {
    const folder = join(root, "owner/empty.git");
    mkdirSync(folder, { recursive: true });
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main");
    const problem = "is empty, or its default branch is: push a commit first, or choose another branch.";
    expect((await inspected("owner/empty.git")).problem).toContain(problem);
    // The default branch that its host goes on to name.
    const name = repository({ "index.html": "x" });
    git(join(root, name), "branch", "--move", "main", "trunk");
    git(join(root, name), "symbolic-ref", "HEAD", "refs/heads/master");
    expect((await inspected(name)).problem).toContain(problem);
    expect((await inspected(name, { branch: "trunk" })).problem).toBeNull();
  });

  it("one whose host says nothing, at the end of its time", async () => {
    const silent = net.createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    inspectSource = inspectorOf([host, `127.0.0.1:${server.port}`]);
    const before = performance.now();
    const found = await inspected("", { address: `${host}/owner/repo`, timeoutMs: 1000 });
    expect(found.problem).toMatch(/took more than 1 seconds to read/);
    expect(performance.now() - before).toBeLessThan(30_000);
    silent.close();
  });
});

describe("a repository by a stranger", () => {
  it("gives no file of the host, by whatever link", async () => {
    const name = repository((folder) => {
      symlinkSync("/etc/passwd", join(folder, "package.json"));
      symlinkSync("/etc/passwd", join(folder, ".env.example"));
      symlinkSync("/etc", join(folder, "app"));
      symlinkSync("/etc/hostname", join(folder, "Dockerfile"));
    });
    const found = await inspected(name);
    expect(JSON.stringify(found)).not.toContain("root:");
    expect(found).toMatchObject({ builder: null, variables: [] });
  });

  it("may have names of any kind", async () => {
    const name = repository({
      ...nextApp,
      "a*[!]?\\ b": "",
      "-rf": "",
      "new\nline": "",
      "#comment": "",
      "é/ü.js": "",
    });
    expect(await inspected(name)).toMatchObject({ framework: "Next.js", problem: null });
  });

  it("may say more, or other characters, than fit into the answer, which has all the rest", async () => {
    const long = "x".repeat(2500);
    const name = repository({
      "package.json": JSON.stringify({
        packageManager: `pnpm@9.12.1+sha512.${"e5a7".repeat(32)}`,
        scripts: { build: "tsc" },
        dependencies: { express: "5" },
      }),
      "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
      Procfile: `web: node index.js ${long}\nrelease: node \0 release.js\n`,
      "index.js": "",
      [`${"d".repeat(200)}/${"e".repeat(200)}/package.json`]: "{}",
      "apps/web/package.json": "{}",
    });
    const branch = `feature/${"b".repeat(150)}`;
    git(join(root, name), "branch", branch);
    expect(await inspected(name, { branch })).toMatchObject({
      branch,
      framework: "Express",
      packageManager: "pnpm",
      rootDirs: ["apps/web"],
      startCommand: null,
      releaseCommand: null,
      notes: [
        "Its start command is too long to be shown here, or has characters that cannot be: its files say what it is.",
        "Its release command is too long to be shown here, or has characters that cannot be: its files say what it is.",
      ],
      problem: null,
    });
    const folders = Array.from({ length: 50 }, (_, index) => `${index}${"d".repeat(240)}/${"e".repeat(240)}`);
    const many = repository(Object.fromEntries(folders.map((folder) => [`${folder}/package.json`, "{}"])));
    expect(await inspected(many)).toMatchObject({
      rootDirs: [],
      problem: expect.stringMatching(/…$/) as string,
    });
  });

  it("is told of a name that its deployment would fail with", async () => {
    const name = repository((folder) =>
      writeFileSync(Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.of(0xe9)]), ""),
    );
    expect(await inspected(name)).toMatchObject({
      reachable: false,
      problem: expect.stringMatching(/^The name caf\uFFFD in the repository is not UTF-8/) as string,
    });
  });

  it("is read with the token that is given, which nobody else sees", async () => {
    server.requests.length = 0;
    await inspected(repository(nextApp), { token: "very-secret" });
    const sent = new Set(server.requests.map(({ authorization }) => authorization));
    expect([...sent]).toEqual([`Basic ${Buffer.from("x-access-token:very-secret").toString("base64")}`]);
  });
});

describe("accounts", () => {
  it("take turns, and none may keep more than its share waiting", async () => {
    const turns = new Turns({ atOnce: 1, perAccount: 3, waiting: 4 });
    const { signal } = new AbortController();
    const done: string[] = [];
    const first = Promise.withResolvers<void>();
    const work = (account: string, until?: Promise<void>) =>
      turns.take(account, signal, async () => {
        await until;
        done.push(account);
      });
    const all = [work("a", first.promise), work("a"), work("a"), work("b")];
    await expect(work("a")).rejects.toThrow(/Your account's repositories/);
    all.push(work("c"));
    await expect(work("d")).rejects.toThrow(/as many repositories as it can/);
    first.resolve();
    await Promise.all(all);
    expect(done).toEqual(["a", "b", "c", "a", "a"]);
  });

  it("that leave give their place back", async () => {
    const turns = new Turns({ atOnce: 1, perAccount: 2, waiting: 1 });
    const first = Promise.withResolvers<void>();
    const working = turns.take("a", new AbortController().signal, () => first.promise);
    const leaving = new AbortController();
    const left = turns.take("b", leaving.signal, () => Promise.resolve());
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    const next = turns.take("c", new AbortController().signal, () => Promise.resolve("c"));
    first.resolve();
    await working;
    expect(await next).toBe("c");
  });
});
