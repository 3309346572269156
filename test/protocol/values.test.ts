import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { readdirSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { DatabaseName } from "../../protocol/api/databases.ts";
import {
  GitAddress,
  GitBranch,
  ImageReference,
  LabelName,
  RepositoryPath,
  SiteName,
} from "../../protocol/api/sites.ts";
import { MountPath } from "../../protocol/api/volumes.ts";
import { FromAgent, ToAgent } from "../../protocol/agent/messages.ts";

const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
  schema.safeParse(value).success;

describe("a branch", () => {
  it.each([
    "main",
    "release/1.2",
    "feature/a_b-c",
    "v1.0.0",
    "feature/a+b",
    "fix/#12",
    "renovate/@scope/x",
    "ünïcode",
    "a=b",
    "feat(x)/y",
    "$(id);`id`",
    "a@b",
  ])("may be %s", (branch) => expect(accepts(GitBranch, branch)).toBe(true));
  it.each([
    "--upload-pack=touch x",
    "-b",
    "a..b",
    "a b",
    "@",
    "HEAD",
    "a/.b",
    "a.lock/b",
    "a.",
    "a^b",
    "a[b",
    "a\\b",
    "a\u007fb",
    "a\u2028b..c",
    "a\nb",
    "/a",
    "a/",
    "a.lock",
    "@{1}",
    ".a",
    "a//b",
    "a~1",
    "a:b",
    "",
  ])("may not be %j", (branch) => expect(accepts(GitBranch, branch)).toBe(false));

  it("is accepted where Git itself takes it as one, and refused where Git does", () => {
    const piece = fc.constantFrom(
      "a",
      "-",
      ".",
      "/",
      "@",
      "{",
      "~",
      "ü",
      "[",
      " ",
      "$",
      "(",
      ".lock",
      "HEAD",
      "+",
      "#",
    );
    fc.assert(
      fc.property(fc.string({ unit: piece, minLength: 1, maxLength: 6 }), (branch) => {
        // Reserved, and options to those who do not know better.
        fc.pre(branch !== "@" && branch !== "HEAD" && !branch.startsWith("-"));
        const { status } = spawnSync("git", ["check-ref-format", `refs/heads/${branch}`]);
        expect([branch, accepts(GitBranch, branch)]).toEqual([branch, status === 0]);
      }),
      { numRuns: 200 },
    );
  });
});

describe("a repository's address", () => {
  it.each([
    "github.com/owner/repo",
    "github.com/owner/repo.git",
    "git.example:8443/group/sub/repo",
    "127.0.0.1:3000/a/b.git",
    "github.com/owner/.github",
    `${"a".repeat(63)}.example:65535/owner/repo`,
  ])("may be %s", (address) => expect(accepts(GitAddress, address)).toBe(true));
  it.each([
    "https://github.com/owner/repo",
    "user:pw@github.com/owner/repo",
    "github.com/owner",
    "github.com/../../etc",
    "github.com/-o/--upload-pack=x",
    "github.com/owner/repo?x=1",
    "github.com/owner/repo#x",
    "github.com/owner/re po",
    "ext::sh -c id",
    "file:///etc/passwd",
    "/etc/passwd",
    "github.com/owner/%2e%2e",
    "github.com/owner/..",
    "github.com/./repo",
    "github..com/owner/repo",
    "github.com./owner/repo",
    "-a.example/owner/repo",
    "a-.example/owner/repo",
    `${"a".repeat(64)}.example/owner/repo`,
    `${"a.".repeat(127)}a/owner/repo`,
    "git.example:65536/owner/repo",
    "git.example:0/owner/repo",
    "[::1]/owner/repo",
  ])("may not be %j", (address) => expect(accepts(GitAddress, address)).toBe(false));
});

describe("paths, names and images", () => {
  it("of repositories stay inside", () => {
    for (const path of ["app", "a/b/Dockerfile", "docker/.hidden"])
      expect(accepts(RepositoryPath, path)).toBe(true);
    for (const path of ["..", "a/../b", "/etc", "a/./b", "a\0b", "./a", ""])
      expect(accepts(RepositoryPath, path)).toBe(false);
  });
  it("of sites are 1–63 of a-z, 0-9 and -", () => {
    for (const name of ["a", "my-shop", "-", "-a", "a-", "xn--a", "x".repeat(63)])
      expect(accepts(SiteName, name)).toBe(true);
    for (const name of ["", "A", "a.b", "a_b", "a\n", "x".repeat(64), "é"])
      expect(accepts(SiteName, name)).toBe(false);
  });
  it("of databases are what resolvers look up", () => {
    for (const name of ["a", "7", "my-shop", "my_shop", "x".repeat(63)])
      expect(accepts(DatabaseName, name)).toBe(true);
    for (const name of ["", "-a", "a-", "_a", "a_", "A", "a.b", "a b", "x".repeat(64), "é"])
      expect(accepts(DatabaseName, name)).toBe(false);
  });
  it("of schedules are DNS labels", () => {
    for (const name of ["a", "my-shop", "x".repeat(63)]) expect(accepts(LabelName, name)).toBe(true);
    for (const name of ["", "-a", "a-", "A", "a.b", "a_b", "x".repeat(64), "é"])
      expect(accepts(LabelName, name)).toBe(false);
  });
  it("of images are references, never options or shell", () => {
    for (const image of [
      "nginx",
      "nginx:1.27",
      "registry.example/owner/app:v1",
      "localhost:5000/a/b",
      `a@sha256:${"0".repeat(64)}`,
      "MyReg.example.com/app",
      "MYREG:5000/app",
      "localhost/app",
      "user_name/app",
      "a__b/c--d.e",
      "site.example",
      "127.0.0.1:65535/app",
      `owner/${"a".repeat(64)}`,
      `${"a".repeat(64)}:v1`,
    ])
      expect([image, accepts(ImageReference, image)]).toEqual([image, true]);
    for (const image of [
      "",
      "--privileged",
      "Nginx",
      "a b",
      "a;b",
      "a:$(id)",
      "a@sha256:12",
      "nginx:99999/x",
      "nginx:65536/x",
      "nginx:0/x",
      "a..b/c",
      "a.b./c",
      "a-/x",
      "a___b/c",
      "a_b.example/x",
      "MyReg/app",
      "reg.example/App",
      "a".repeat(64),
      `${"a".repeat(64)}.example/app`,
    ])
      expect([image, accepts(ImageReference, image)]).toEqual([image, false]);
  });
});

describe("a volume's place", () => {
  it.each([
    "/data",
    "/var/lib/app",
    "/usr/src/app/data",
    "/app/.cache",
    "/srv/a-b_c@1+2",
    "/etcetera",
    "/tmp",
  ])("may be %s", (path) => expect(accepts(MountPath, path)).toBe(true));
  it.each(
    [
      ["", "/", "data", "./data", "~/data", "C:\\data", "//data", "/data/", "/data//a"],
      [
        "/data/..",
        "/../data",
        "/data/../etc",
        "/.",
        "/data/.",
        "/a b",
        "/a:ro",
        "/a,b",
        "/a\n",
        "/a\0",
        "/ü",
      ],
      ["/proc", "/proc/1", "/sys/fs", "/dev/shm", "/run", "/var/run/docker.sock", "/etc", "/etc/passwd"],
      [
        "/bin",
        "/sbin/x",
        "/lib/x",
        "/lib64",
        "/usr",
        "/usr/bin",
        "/usr/lib/x",
        "/usr/local",
        "/var",
        "/boot",
      ],
      [`/${"a".repeat(200)}`],
    ].flat(),
  )("may not be %j", (path) => expect(accepts(MountPath, path)).toBe(false));

  it("accepted is absolute, normal and nothing that the container cannot do without", () => {
    const part = fc.constantFrom("..", ".", "", "etc", "proc", "run", "var", "usr", "data", "a b", "x:y");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        const path = `/${parts.join("/")}`;
        if (!accepts(MountPath, path)) return;
        expect(normalize(path)).toBe(path);
        expect(path).not.toMatch(/^\/(etc|proc|run|var\/run)(\/|$)/);
      }),
    );
  });
});

describe("messages of the link", () => {
  it("never crash the parser, whatever comes", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(typeof FromAgent.safeParse(value).success).toBe("boolean");
        expect(typeof ToAgent.safeParse(value).success).toBe("boolean");
      }),
    );
  });
});

it("zod is imported as a namespace everywhere: the named import costs the Worker 70 KiB", () => {
  const root = join(import.meta.dirname, "../..");
  const files = ["protocol", "worker", "agent"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(root, folder, file)),
  );
  expect(
    files.filter((file) => /import \{[^}]*\bz\b[^}]*\} from "zod"/.test(readFileSync(file, "utf8"))),
  ).toEqual([]);
});
