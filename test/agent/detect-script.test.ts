import { describe, expect, it } from "vitest";
import { dockerfileWith, plan } from "../support/detected.ts";

const variables = { plain: ["API_URL"], secret: [], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);

describe("a repository of no known language", () => {
  it("runs its start.sh, after the owner's build command", () =>
    expect(dockerfile({ "start.sh": "" }, { buildCommand: "make" })).toMatchSnapshot());

  it("runs the owner's start command, or its Procfile's", () => {
    expect(plan({ "README.md": "" }, { startCommand: "./serve" })).toMatchObject({
      kind: "script",
      startCommand: "./serve",
    });
    expect(plan({ Procfile: "web: ./serve $PORT\n" })).toMatchObject({ startCommand: "./serve $PORT" });
  });

  it("that has Python's files runs on Python, and one that has JavaScript's on Node", () => {
    const python = plan({ "watch.py": "" }, { startCommand: "python watch.py" });
    expect(python).toMatchObject({ kind: "python", startCommand: "python watch.py" });
    const node = plan({ "watch.js": "", "tool.py": "" }, { startCommand: "node watch.js" });
    expect(node).toMatchObject({ kind: "node", startCommand: "node watch.js" });
    expect(dockerfile({ "server.js": "" })).not.toContain("package.json");
    expect(plan({ "server.js": "" })).toMatchObject({ kind: "node", startCommand: "node server.js" });
  });

  it("that is a page is served as one, unless the owner starts a program", () => {
    const page = { "index.html": "", "start.sh": "", "app.js": "" };
    expect(plan(page)).toEqual({ kind: "static" });
    expect(plan({ "index.html": "" }, { startCommand: "./serve" })).toMatchObject({ kind: "script" });
  });

  it.each([
    ["gleam.toml", "Gleam"],
    ["CMakeLists.txt", "C\\+\\+"],
    ["deps.edn", "Clojure"],
    ["shop.cabal", "Haskell"],
    ["build.zig", "Zig"],
    ["shard.yml", "Crystal"],
    ["shop.cbl", "COBOL"],
    ["package.json5", "package\\.json in its place"],
  ])("and no command is refused by the name of what it has: %s", (file, name) =>
    expect(() => plan({ [file]: "" })).toThrow(new RegExp(`^Found ${file}: .*${name}`)),
  );

  it("is no package of pnpm's where it is Haskell's", () =>
    expect(() => plan({ "package.yaml": "", "stack.yaml": "" })).toThrow(/^Found stack\.yaml: Haskell/));
});

describe("Python without a manifest", () => {
  it.each(["start.py", "bot.py", "hello.py"])("is started by %s", (file) =>
    expect(plan({ [file]: "" })).toMatchObject({ kind: "python", startCommand: `python ${file}` }),
  );
});

describe("Go without a module", () => {
  it("is compiled of its files, tests left out", () => {
    const files = {
      "main.go": "package main\n",
      "page.go": "package main\n",
      "main_test.go": "package main\n",
      "gen.go": "//go:build ignore\npackage main\n",
    };
    const text = dockerfile(files);
    expect(text).toContain("go build -trimpath -ldflags='-s -w' -o /usr/local/bin/app main.go page.go");
    expect(text).not.toContain("go.mod");
  });

  it("that is a workspace is the only program of its modules", () => {
    const work = { "go.work": "go 1.24\nuse (\n\t./api\n\t./lib\n)\n", "api/main.go": "package main\n" };
    expect(plan(work)).toMatchObject({ kind: "go", main: "./api", manifests: [], downloads: false });
    expect(() => plan({ ...work, "web/main.go": "package main\n" })).toThrow(/more than one program/);
    expect(() => plan({ "go.work": "" })).toThrow(/Found a Go module or workspace, but no program/);
  });

  it("that is a library only is none", () =>
    expect(() => plan({ "lib.go": "package lib\n" })).toThrow(/Found neither a Dockerfile/));
});
