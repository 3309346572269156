import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { describeSource, newestCommit, refusalOf } from "../../agent/image-build/fetch-source.ts";
import { git as agentsGit, gitEnvironment } from "../../agent/image-build/git.ts";
import { obtainSource, type Wanted } from "../../agent/image-build/obtain-source.ts";
import { moduleAddress, sharesToken } from "../../agent/image-build/source-address.ts";
import { placeSubmodule } from "../../agent/image-build/submodules.ts";
import { startGitServer, type GitServer, type HrefOf } from "../../scripts/lib/git-server.ts";
import { git } from "../support/git.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Git runs by the dozen, on machines that do other things as well.
vi.setConfig({ testTimeout: 60_000 });

const root = temporaryFolder();
let server: GitServer;
let other: GitServer;
let hrefOf: HrefOf;
/** Sends whoever comes on to `other`. */
let redirecting: http.Server;
let made = 0;

beforeAll(async () => {
  server = await startGitServer(root, 0, (oid, own) => hrefOf(oid, own));
  other = await startGitServer(root);
  redirecting = http.createServer(({ url }, response) =>
    response.writeHead(302, { Location: `http://${hostOf(other)}${url}` }).end(),
  );
  await new Promise<void>((resolve) => redirecting.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await server.close();
  await other.close();
  redirecting.close();
});
beforeEach(() => {
  hrefOf = (_, own) => own;
  server.requests.length = 0;
  other.requests.length = 0;
});

const hostOf = ({ port }: GitServer) => `127.0.0.1:${port}`;
const redirectingHost = () => `127.0.0.1:${(redirecting.address() as AddressInfo).port}`;

type Content = {
  files?: Record<string, string>;
  modules?: { path: string; url: string; commit: string }[];
  lfs?: Record<string, string>;
};

/** One more commit of a repository with these files and submodules; answers the commit. */
function commit(name: string, { files = {}, modules = [], lfs = {} }: Content): string {
  const folder = join(root, `${name}.git`);
  if (!existsSync(folder)) {
    mkdirSync(folder, { recursive: true });
    git(folder, "init", "--quiet", "--initial-branch=main");
  }
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [path, text] of Object.entries(files)) write(path, text);
  for (const [path, text] of Object.entries(lfs)) {
    const oid = createHash("sha256").update(text).digest("hex");
    write(
      path,
      `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${Buffer.byteLength(text)}\n`,
    );
    mkdirSync(join(folder, "lfs"), { recursive: true });
    writeFileSync(join(folder, "lfs", oid), text);
    write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  }
  if (modules.length > 0)
    write(
      ".gitmodules",
      modules.map(({ path, url }) => `[submodule "${path}"]\n\tpath = ${path}\n\turl = ${url}\n`).join(""),
    );
  git(folder, "add", "--all", "--", ":!lfs");
  for (const { path, commit } of modules)
    git(folder, "update-index", "--add", "--cacheinfo", `160000,${commit},${path}`);
  git(folder, "commit", "--quiet", "--allow-empty", "-m", "x");
  return git(folder, "rev-parse", "HEAD");
}

const unique = (name: string) => `owner/${name}${++made}`;

const settingsOf = (hosts: string[] = []) => ({
  buildCaFile: null,
  insecureGitHosts: [hostOf(server), hostOf(other), redirectingHost(), ...hosts],
  drainSeconds: 1,
  drainMaxSeconds: 1,
  probationSeconds: 0,
});

async function obtain(
  name: string,
  wanted: Partial<Wanted> = {},
  limits?: { files: number; megabytes: number },
  hosts: string[] = [],
) {
  const folder = join(mkdtempSync(join(root, "work-")), "source");
  const lines: string[] = [];
  const source = { address: `${hostOf(server)}/${name}`, branch: null, token: null, ...wanted };
  await obtainSource(
    source,
    folder,
    settingsOf(hosts),
    {
      signal: new AbortController().signal,
      log: (text) => lines.push(text),
    },
    limits,
  );
  return { read: (path: string) => readFileSync(join(folder, path), "utf8"), folder, lines };
}

const submodules = { submodules: true };
const lfs = { lfs: true };

it("what is asked for by its name and is not there is called a branch or a tag, as it may be either", async () => {
  const name = unique("named");
  commit(name, { files: { "index.html": "x" } });
  await expect(obtain(name, { branch: "v2" })).rejects.toThrow(/^The branch or tag v2 does not exist in /);
});

it("a repository is refused for what Git says of it, not for its name", async () => {
  const name = `${redirectingHost()}/owner/401-404-not-found.git`;
  await expect(obtain("x", { address: name })).rejects.toThrow(/redirects/);
});

it("a repository is found where its host, as GitLab, knows it by its address with .git only", async () => {
  const name = unique("named");
  const pushed = commit(name, { files: { "a.txt": "hello" } });
  const strict = http.createServer((request, response) => {
    const url = request.url ?? "";
    if (!url.includes(".git/"))
      return response.writeHead(301, { Location: url.replace("/info/", ".git/info/") }).end();
    const { method, headers } = request;
    const options = { port: server.port, path: url, method, headers };
    return request.pipe(
      http.request(options, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      }),
    );
  });
  await new Promise<void>((resolve) => strict.listen(0, "127.0.0.1", resolve));
  try {
    const host = `127.0.0.1:${(strict.address() as AddressInfo).port}`;
    const address = `${host}/${name}`;
    expect((await obtain(name, { address }, undefined, [host])).read("a.txt")).toBe("hello");
    const source = { address, branch: null, token: null };
    const signal = new AbortController().signal;
    expect(
      await newestCommit({ settings: settingsOf([host]), workDirectory: root }, source, { signal }),
    ).toBe(pushed);
  } finally {
    strict.close();
  }
});

it.each([
  ["a token", "t0ken", "x-access-token:t0ken"],
  ["one with the name that its host wants", "x-token-auth:t0ken", "x-token-auth:t0ken"],
])("a repository is asked for with %s", async (_, token, login) => {
  const name = unique("private");
  commit(name, { files: { "a.txt": "hello" } });
  await obtain(name, { token });
  const expected = `Basic ${Buffer.from(login).toString("base64")}`;
  expect(server.requests.map(({ authorization }) => authorization)).toContain(expected);
});

it("a repository of a few kilobytes that stands for a billion files is refused before one of them is written", async () => {
  const name = unique("bomb");
  commit(name, { files: { "a.txt": "a" } });
  const folder = join(root, `${name}.git`);
  const treeOf = (entry: string) =>
    execFileSync("git", ["-C", folder, "mktree"], {
      input: Array.from({ length: 10 }, (_, n) => `${entry}\t${n}\n`).join(""),
      encoding: "utf8",
    }).trim();
  let tree = treeOf(`100644 blob ${git(folder, "rev-parse", "HEAD:a.txt")}`);
  for (let level = 0; level < 8; level++) tree = treeOf(`040000 tree ${tree}`);
  const bomb = git(folder, "commit-tree", "-m", "bomb", tree);
  git(folder, "update-ref", "refs/heads/main", bomb);
  await expect(obtain(name)).rejects.toThrow(/more than 100000 files/);
  await expect(obtain(name, { commit: bomb })).rejects.toThrow(/more than 100000 files/);
});

it("a repository with a path longer than any usual one is refused before it is written, as no agent could read or remove it", async () => {
  const name = unique("long");
  const long = Array.from({ length: 20 }, () => "d".repeat(200)).join("/");
  commit(name, { files: { [`${"d".repeat(250)}/${"e".repeat(250)}/${"f".repeat(250)}/a.txt`]: "a" } });
  await obtain(name);
  const folder = join(root, `${name}.git`);
  const blob = git(
    folder,
    "rev-parse",
    `HEAD:${"d".repeat(250)}/${"e".repeat(250)}/${"f".repeat(250)}/a.txt`,
  );
  git(folder, "update-index", "--add", "--cacheinfo", `100644,${blob},${long}`);
  git(folder, "commit", "--quiet", "-m", "long");
  const refused = /has a path of more than 800 bytes \(d{60}…\): shorten the names/;
  await expect(obtain(name)).rejects.toThrow(refused);
  await expect(obtain(name, { commit: git(folder, "rev-parse", "HEAD") })).rejects.toThrow(refused);
});

it("a repository with a file name that is not UTF-8 is refused by that name; any other name is fetched", async () => {
  const name = unique("latin1");
  commit(name, { files: { "a.txt": "a", "menü/�.txt": "b" } });
  expect((await obtain(name)).read("menü/�.txt")).toBe("b");
  const folder = join(root, `${name}.git`);
  const blob = git(folder, "rev-parse", "HEAD:a.txt");
  execFileSync("git", ["-C", folder, "update-index", "-z", "--index-info"], {
    input: Buffer.from(`100644 ${blob}\tmen\xfc/caf\xe9.txt\0`, "latin1"),
  });
  git(folder, "commit", "--quiet", "-m", "latin1");
  await expect(obtain(name)).rejects.toThrow(
    "The name men�/caf�.txt in the repository is not UTF-8, which image builds require: rename it, for example with git mv.",
  );
});

/** One commit whose objects are written as they are, which Git itself would not. */
function commitAsIs(name: string, { mode = "40000", at = "1700000000 +0000", path = "folder" }) {
  const folder = join(root, `${name}.git`);
  mkdirSync(folder, { recursive: true });
  git(folder, "init", "--quiet", "--initial-branch=main");
  const write = (type: string, content: Buffer | string) =>
    execFileSync("git", ["-C", folder, "hash-object", "-w", "--literally", "--stdin", "-t", type], {
      input: content,
      encoding: "utf8",
    }).trim();
  const treeOf = (entry: string, object: string) =>
    write("tree", Buffer.concat([Buffer.from(`${entry}\0`), Buffer.from(object, "hex")]));
  const tree = treeOf(`${mode} ${path}`, treeOf("100644 a.txt", write("blob", "old")));
  const author = `t <t@t.test> ${at}`;
  git(
    folder,
    "update-ref",
    "refs/heads/main",
    write("commit", `tree ${tree}\nauthor ${author}\ncommitter ${author}\n\nx\n`),
  );
}

it("a repository is fetched whose objects are as older Git hosts and imports wrote them", async () => {
  const [padded, zone] = [unique("padded"), unique("zone")];
  commitAsIs(padded, { mode: "040000" });
  expect((await obtain(padded)).read("folder/a.txt")).toBe("old");
  commitAsIs(zone, { at: "1700000000 +051800" });
  expect((await obtain(zone)).read("folder/a.txt")).toBe("old");
});

it("a Git host that is slow to answer is told of as such, and not as a damaged repository", () => {
  const said =
    "error: RPC failed; curl 28 Operation too slow. Less than 1000 bytes/sec transferred the last 120 seconds\n" +
    "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output\n";
  const source = { address: "git.example.com/a/b", branch: null, token: null };
  expect(refusalOf(said, source).message).toBe(
    "The Git host of git.example.com/a/b sent next to nothing for 120 seconds: try again later, or make the repository smaller.",
  );
});

it("a repository with an object that Git refuses is told which and why", async () => {
  const name = unique("damaged");
  commitAsIs(name, { path: ".git" });
  await expect(obtain(name)).rejects.toThrow(
    /could not be fetched, because Git refuses its object [0-9a-f]{12} \(hasDotgit: contains '\.git'\): /,
  );
});

it("a repository of SHA-256 objects is fetched, at a commit too, and with its submodules", async () => {
  const [inner, outer] = [unique("inner"), unique("outer")];
  for (const name of [inner, outer]) {
    mkdirSync(join(root, `${name}.git`), { recursive: true });
    git(join(root, `${name}.git`), "init", "--quiet", "--initial-branch=main", "--object-format=sha256");
  }
  const first = commit(inner, { files: { "a.txt": "first" } });
  commit(inner, { files: { "a.txt": "second" } });
  const url = `http://${hostOf(server)}/${inner}.git`;
  const newest = commit(outer, { modules: [{ path: "lib", url, commit: first }] });
  const { folder, read } = await obtain(outer, submodules);
  expect(read("lib/a.txt")).toBe("first");
  const source = { address: `${hostOf(server)}/${outer}`, branch: null, token: null };
  const { signal } = new AbortController();
  expect(await describeSource(source, folder, signal)).toEqual({ commit: newest, commitMessage: "x" });
  expect(await newestCommit({ settings: settingsOf(), workDirectory: root }, source, { signal })).toBe(
    newest,
  );
});

it("a repository without a commit is fetched as such", async () => {
  const name = unique("empty");
  mkdirSync(join(root, `${name}.git`), { recursive: true });
  git(join(root, `${name}.git`), "init", "--quiet", "--initial-branch=main");
  const { folder } = await obtain(name);
  expect(readdirSync(folder)).toEqual([".git"]);
});

describe("submodules", () => {
  it("are refused unless asked for", async () => {
    const inner = unique("inner");
    const outer = unique("outer");
    const at = commit(inner, { files: { "a.txt": "inner" } });
    commit(outer, {
      modules: [{ path: "lib/inner", url: `http://${hostOf(server)}/${inner}.git`, commit: at }],
    });
    await expect(obtain(outer)).rejects.toThrow(/the setting submodules/);
  });

  it("are fetched at the commit the repository names, by relative addresses too, and theirs in turn", async () => {
    const [deep, inner, outer] = [unique("deep"), unique("inner"), unique("outer")];
    const atDeep = commit(deep, { files: { "deep.txt": "deep, first" } });
    commit(deep, { files: { "deep.txt": "deep, second" } });
    const relative = `../${deep.split("/")[1]}.git`;
    const atInner = commit(inner, {
      files: { "inner.txt": "inner" },
      modules: [{ path: "deep", url: relative, commit: atDeep }],
    });
    commit(outer, {
      files: { "outer.txt": "outer" },
      modules: [{ path: "lib/inner", url: `http://${hostOf(server)}/${inner}.git`, commit: atInner }],
    });
    const { read, folder, lines } = await obtain(outer, submodules);
    expect(read("outer.txt")).toBe("outer");
    expect(read("lib/inner/inner.txt")).toBe("inner");
    expect(read("lib/inner/deep/deep.txt")).toBe("deep, first");
    expect(existsSync(join(folder, "lib/inner/.git"))).toBe(false);
    expect(lines).toContainEqual(
      expect.stringMatching(/^Fetching submodule lib\/inner\/deep from .* at [0-9a-f]{12}\.$/),
    );
  });

  it.each([
    "file:///etc",
    "/etc",
    "ssh://git@github.com/a/b",
    "git@github.com:a/b.git",
    "ext::sh -c id",
    "http://github.com/a/b",
    "https://token@github.com/a/b",
    "https://github.com/a/../../b",
    "../../../../../etc",
    "https://--upload-pack=x/a/b",
  ])("with the address %s are refused before anything is asked", async (url) => {
    const outer = unique("outer");
    commit(outer, { modules: [{ path: "lib", url, commit: "a".repeat(40) }] });
    // Git's own check of what it fetches refuses some of them first.
    await expect(obtain(outer, submodules)).rejects.toThrow(
      /Submodule lib: .* in \.gitmodules|could not be fetched/,
    );
    expect(server.requests.every(({ path }) => path.startsWith(`/${outer}`))).toBe(true);
  });

  it.each([
    ["https://127.0.0.1/a/b", /not on a public address/],
    ["https://169.254.169.254/a/b", /not on a public address/],
    ["https://localhost/a/b", /not on a public address/],
    ["https://github.com:8443/a/b", /port 443 only/],
  ])("at %s are refused like a site's own repository there", async (url, why) => {
    const outer = unique("outer");
    commit(outer, { modules: [{ path: "lib", url, commit: "a".repeat(40) }] });
    await expect(obtain(outer, submodules)).rejects.toThrow(why);
  });

  it.each(["../x", "a/../../x", ".git/hooks", "a/.GIT", "a/./b", "/etc/x"])(
    "with the path %s are refused",
    async (path) => {
      const outer = unique("outer");
      const url = `http://${hostOf(server)}/owner/any.git`;
      commit(outer, { files: { ".gitmodules": `[submodule "x"]\n\tpath = ${path}\n\turl = ${url}\n` } });
      await expect(obtain(outer, submodules)).rejects.toThrow(
        /leads out of the repository|could not be fetched/,
      );
    },
  );

  it("that .gitmodules names and the commit does not hold are none, as for Git", async () => {
    const outer = unique("outer");
    commit(outer, {
      files: { ".gitmodules": '[submodule "x"]\n\tpath = lib\n\turl = file:///etc\n', "a.txt": "a" },
    });
    expect((await obtain(outer, submodules)).read("a.txt")).toBe("a");
  });

  it("are put into empty folders only, and never through a link", async () => {
    const folder = mkdtempSync(join(root, "place-"));
    const outside = mkdtempSync(join(root, "outside-"));
    mkdirSync(join(outside, "inner"));
    execFileSync("ln", ["-s", outside, join(folder, "link")]);
    mkdirSync(join(folder, "full"));
    writeFileSync(join(folder, "full", "a.txt"), "");
    const fetched = mkdtempSync(join(root, "fetched-"));
    for (const path of ["link", "link/inner", "full", "full/a.txt", "missing"])
      await expect(placeSubmodule(folder, path, fetched)).rejects.toThrow(
        /not an empty folder of the repository/,
      );
    expect(existsSync(join(outside, "inner"))).toBe(true);
  });

  it("may lie three levels deep, not more", async () => {
    const name = unique("self");
    const url = `./../${name.split("/")[1]}.git`;
    let last = commit(name, { files: { "level.txt": "0" } });
    for (let level = 1; level <= 4; level++) {
      const modules = [{ path: "again", url, commit: last }];
      last = commit(name, { files: { "level.txt": `${level}` }, modules });
      if (level === 3) expect((await obtain(name, submodules)).read("again/again/again/level.txt")).toBe("0");
    }
    await expect(obtain(name, submodules)).rejects.toThrow(/more than 3 levels deep/);
  });

  it("are at most 20, and count with the repository's size and files", async () => {
    const [inner, outer] = [unique("inner"), unique("outer")];
    const at = commit(inner, { files: { "a.txt": "a", "b.txt": "b" } });
    const url = `http://${hostOf(server)}/${inner}.git`;
    commit(outer, { modules: [1, 2].map((n) => ({ path: `lib/${n}`, url, commit: at })) });
    // .gitmodules, lib, lib/1, lib/2 and two files in each
    await obtain(outer, submodules, { files: 8, megabytes: 1 });
    await expect(obtain(outer, submodules, { files: 7, megabytes: 1 })).rejects.toThrow(/more than 7 files/);
    const many = unique("many");
    commit(many, { modules: Array.from({ length: 21 }, (_, n) => ({ path: `lib/${n}`, url, commit: at })) });
    await expect(obtain(many, submodules)).rejects.toThrow(/more than 20 submodules/);
  });

  it("at a commit their repository does not have are named", async () => {
    const [inner, outer] = [unique("inner"), unique("outer")];
    commit(inner, { files: { "a.txt": "a" } });
    const url = `http://${hostOf(server)}/${inner}.git`;
    commit(outer, { modules: [{ path: "lib", url, commit: "b".repeat(40) }] });
    await expect(obtain(outer, submodules)).rejects.toThrow(/^Submodule lib: The commit bbbbbbbbbbbb is not/);
  });

  it("get the site's token on its own host and owner only", async () => {
    const [inner, outer] = [unique("inner"), unique("outer")];
    const at = commit(inner, { files: { "a.txt": "a" } });
    const stranger = `stranger/inner${++made}`;
    const atStranger = commit(stranger, { files: { "a.txt": "a" } });
    const modules = [
      { path: "same", url: `http://${hostOf(server)}/${inner}.git`, commit: at },
      { path: "owner", url: `http://${hostOf(server)}/${stranger}.git`, commit: atStranger },
      { path: "host", url: `http://${hostOf(other)}/${inner}.git`, commit: at },
    ];
    commit(outer, { modules });
    await obtain(outer, { ...submodules, token: "t0ken" });
    const tokensOf = ({ requests }: GitServer, name: string) =>
      new Set(
        requests
          .filter(({ path }) => path.startsWith(`/${name}.git`))
          .map(({ authorization }) => authorization !== undefined),
      );
    expect(tokensOf(server, inner)).toEqual(new Set([true]));
    expect(tokensOf(server, stranger)).toEqual(new Set([false]));
    expect(tokensOf(other, inner)).toEqual(new Set([false]));
  });
});

describe("an address in .gitmodules", () => {
  it("is read from its parent's as Git reads it", () => {
    expect(moduleAddress("git.example/a/b.git", "../c", [])).toBe("git.example/a/c");
    expect(moduleAddress("git.example/a/b", "../../x/c.git", [])).toBe("git.example/x/c.git");
    expect(moduleAddress("git.example/a/b", "https://other.example/c/d/", [])).toBe("other.example/c/d");
    for (const url of ["../../c", "../../../evil.example/a/b", "../../../../x/y/z"])
      expect(() => moduleAddress("git.example/a/b", url, [])).toThrow(/in \.gitmodules/);
  });

  it("shares the token by host and owner", () => {
    expect(sharesToken("git.example/a/b", "GIT.example/a/c")).toBe(true);
    for (const address of ["git.example/A/c", "git.example/b/a", "evil.example/a/b", "git.example:444/a/b"])
      expect(sharesToken("git.example/a/b", address)).toBe(false);
  });
});

describe("files that Git LFS keeps", () => {
  it("take the place of their pointers, those of submodules too, with their rights", async () => {
    const [inner, outer] = [unique("inner"), unique("outer")];
    const at = commit(inner, { lfs: { "deep/inner.bin": "of the submodule" } });
    commit(outer, {
      lfs: Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`data/${n}.bin`, `content ${n % 110}`])),
      modules: [{ path: "lib", url: `../${inner.split("/")[1]}.git`, commit: at }],
    });
    const { read, folder, lines } = await obtain(outer, { ...submodules, ...lfs });
    for (let n = 0; n < 120; n++) expect(read(`data/${n}.bin`)).toBe(`content ${n % 110}`);
    expect(read("lib/deep/inner.bin")).toBe("of the submodule");
    expect(statSync(join(folder, "data/0.bin")).mode & 0o777).toBe(0o644);
    expect(lines).toContain("Fetching 120 files from Git LFS.");
    expect(lines).toContain("Fetching 1 file from Git LFS for submodule lib.");
  });

  it("of another content, shorter, longer, or missing on the server are refused and named", async () => {
    const text = "the true content";
    const oid = createHash("sha256").update(text).digest("hex");
    for (const [stored, why] of [
      ["the fake content", /data\.bin .* not the file that the repository names/],
      ["short", /has 5 bytes, the repository says 16/],
      ["x".repeat(100_000), /larger than the 16 bytes/],
      [null, /404 Object does not exist/],
    ] as const) {
      const name = unique("files");
      commit(name, { lfs: { "data.bin": text } });
      const file = join(root, `${name}.git`, "lfs", oid);
      if (stored === null) rmSync(file);
      else writeFileSync(file, stored);
      await expect(obtain(name, lfs)).rejects.toThrow(why);
    }
  });

  it("larger than the limit are refused before anything is fetched", async () => {
    const name = unique("files");
    commit(name, { lfs: { "data.bin": "x".repeat(1024 * 1024) } });
    await expect(obtain(name, lfs, { files: 100, megabytes: 1 })).rejects.toThrow(/larger than 1 MB/);
    expect(server.requests.some(({ path }) => path.includes("/info/lfs/"))).toBe(false);
  });

  it.each([
    "file:///etc/passwd",
    "http://127.0.0.1:1/x",
    "https://127.0.0.1/x",
    "https://169.254.169.254/latest",
    "https://[::1]/x",
    "https://localhost/x",
    "https://user@github.com/x",
    "https://github.com:22/x",
    "no address",
  ])("at %s are refused", async (href) => {
    const name = unique("files");
    commit(name, { lfs: { "data.bin": "content" } });
    hrefOf = () => href;
    await expect(obtain(name, lfs)).rejects.toThrow(/not an https address|public address|names no address/);
  });

  it("are not looked for behind a redirect, nor are submodules", async () => {
    const [inner, outer] = [unique("inner"), unique("outer")];
    const at = commit(inner, { lfs: { "data.bin": "content" } });
    hrefOf = (_, own) => own.replace(hostOf(server), redirectingHost());
    await expect(obtain(inner, lfs)).rejects.toThrow(/data\.bin .* the server answered 302/);
    commit(outer, {
      modules: [{ path: "lib", url: `http://${redirectingHost()}/${inner}.git`, commit: at }],
    });
    await expect(obtain(outer, submodules)).rejects.toThrow(/^Submodule lib: .*redirects/);
    expect(other.requests).toEqual([]);
  });

  it("are asked for with the site's token; the token goes to the repository's own host only", async () => {
    const name = unique("files");
    commit(name, { lfs: { "data.bin": "content" } });
    hrefOf = (_, own) => own.replace(hostOf(server), hostOf(other));
    const wanted = { ...lfs, token: "t0ken" };
    expect((await obtain(name, wanted)).read("data.bin")).toBe("content");
    expect(server.requests.filter(({ path }) => path.endsWith("/batch"))).toMatchObject([
      { authorization: expect.stringMatching(/^Basic /) as string },
    ]);
    expect(other.requests.map(({ authorization }) => authorization)).toEqual([undefined]);
    hrefOf = (_, own) => own;
    expect((await obtain(name, wanted)).read("data.bin")).toBe("content");
    expect(server.requests.at(-1)).toMatchObject({
      authorization: expect.stringMatching(/^Basic /) as string,
    });
  });
});

it("Git takes up nothing of a repository that the agent's own folder lies in", async () => {
  const { code, stderr } = await agentsGit(
    ["rev-parse"],
    gitEnvironment(root, "http", null),
    AbortSignal.timeout(10_000),
  );
  expect([code, stderr]).toEqual([128, expect.stringContaining("not a git repository")]);
});
