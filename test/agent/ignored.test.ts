import { describe, expect, it } from "vitest";
import { ignoredBy } from "../../agent/image-build/ignored.ts";
import { computedMs, slowness } from "../support/computed.ts";

const left = (text: string, paths: readonly string[]): string[] => {
  const isIgnored = ignoredBy(text);
  return paths.filter((path) => !isIgnored(path, () => false));
};

describe("a .dockerignore", () => {
  it.each([
    ["node_modules", ["node_modules", "node_modules/a/b", "app/node_modules"], ["app/node_modules"]],
    ["*.md", ["a.md", "docs/a.md", "a.mdx"], ["docs/a.md", "a.mdx"]],
    ["**/*.md", ["a.md", "docs/a.md", "docs/b/a.md", "a.txt"], ["a.txt"]],
    ["**/node_modules", ["node_modules/a", "b/c/node_modules/a", "b/my_node_modules"], ["b/my_node_modules"]],
    ["docs/**", ["docs", "docs/a", "docs/a/b", "other"], ["docs", "other"]],
    ["a/**/z", ["a/z", "a/b/z", "a/b/c/z", "a/bz", "z"], ["a/bz", "z"]],
    ["/dist/", ["dist/a", "app/dist"], ["app/dist"]],
    ["./tmp", ["tmp/a"], []],
    ["te?t", ["test", "tent/a", "te/t", "tet"], ["te/t", "tet"]],
    ["[a-c]1", ["a1", "c1/x", "d1"], ["d1"]],
    ["[^a-c]1", ["a1", "d1"], ["a1"]],
    ["c++\nfoo(1).txt\na|b\n$x", ["c++/a", "foo(1).txt", "a|b", "$x", "ccc"], ["ccc"]],
    ["\\*", ["*", "a"], ["a"]],
    ["# dist\n\n  \r\nlog\r\n", ["dist", "log"], ["dist"]],
    ["*\n!src\n!package.json", ["src", "src/a", "package.json", "b"], ["src", "src/a", "package.json"]],
    ["*.md\n!README.md\nREADME.md", ["README.md"], []],
    ["secret\n!secret/public", ["secret/a", "secret/public/b"], ["secret/public/b"]],
  ])("%j leaves of %j these: %j", (text, paths, expected) => {
    expect(left(text, paths)).toEqual(expected);
  });

  it("lets folders be looked into below which something is excepted", () => {
    const isIgnored = ignoredBy("*\n!src/index.js\n!**/LICENSE");
    expect(isIgnored("src", () => true)).toBe(false);
    expect(isIgnored("other", () => true)).toBe(false);
    expect(isIgnored("file", () => false)).toBe(true);
    const fewer = ignoredBy("*\n!src/index.js");
    expect(fewer("other", () => true)).toBe(true);
  });

  it("whose pattern cannot be read is refused with it", () => {
    expect(() => ignoredBy("ok\n[a")).toThrow(/The pattern \[a in \.dockerignore has a \[/);
    expect(() => ignoredBy("a\n".repeat(20_000))).toThrow(/larger than 32 KB/);
  });

  it.each([
    ["(a+)+b", "a".repeat(60)],
    ["*a".repeat(60) + "b", "a".repeat(255)],
    ["**/".repeat(60) + "x", "a/".repeat(2000) + "b"],
    ["f/" + "*a".repeat(15_990), `f/${"a".repeat(230)}`],
    ["*".repeat(32_000) + "b", "a".repeat(255)],
  ])("is read in no time, whatever strangers wrote: %.20s", (pattern, path) => {
    const before = computedMs();
    expect(left(pattern, [path])).toEqual([path]);
    expect(computedMs() - before).toBeLessThan(1000 * slowness());
  });

  it("that takes too long to compare with all files is refused, with what to do", () => {
    const isIgnored = ignoredBy("*?b\n".repeat(1000), 1_000_000);
    const compare = () => {
      for (let number = 0; number < 100; number++) isIgnored(`${"a".repeat(200)}${number}`, () => false);
    };
    expect(compare).toThrow(/takes too long to compare .* fewer and simpler patterns/);
    const ranges = ignoredBy(`*[${"x".repeat(30_000)}]b`, 1_000_000);
    expect(() => ranges("a".repeat(200), () => false)).toThrow(/takes too long/);
  });

  it("that people write is far from that, in a large repository", () => {
    const rules =
      "node_modules\n**/node_modules\n*.md\n**/*.log\n.git\ndist\n!README.md\n.env*\ndocs/**/draft-*";
    const isIgnored = ignoredBy(rules, 10_000_000);
    for (let number = 0; number < 10_000; number++)
      isIgnored(`packages/some-${number % 100}/source/components/file-${number}.ts`, () => false);
  });
});
