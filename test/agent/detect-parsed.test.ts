import { describe, expect, it } from "vitest";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import { startNotes } from "../../agent/image-build/detect/start-notes.ts";
import { toolNotes } from "../../agent/image-build/detect/tool-notes.ts";
import { workspaceOf } from "../../agent/image-build/detect/workspace.ts";
import { node, plan } from "../support/detected.ts";
import { sourcesOf } from "../support/sources.ts";

const start = { scripts: { start: "node ." } };

describe("versions and tables are read as the tools of their language read them:", () => {
  it.each([
    [">20.0.5 <22", 20],
    ["~> 20", 20],
    [">=20.9.0 <=22.x.x", 22],
    ["20.x.x || >=28", 20],
  ])("engines.node %s", (range, major) =>
    expect(node({ ...start, engines: { node: range } })).toMatchObject({ major }),
  );

  it.each([
    ["~8.1", null],
    [">=8.1,<8.4", "8.3"],
    ["^7.4|~8.2.0", "8.2"],
    ["7.4.*", "7.4"],
  ])("PHP %s", (php, version) =>
    expect(plan({ "index.php": "", "composer.json": JSON.stringify({ require: { php } }) })).toMatchObject({
      version,
    }),
  );

  it.each([
    ["~=3.10", null],
    ["~=3.10.2", "3.10"],
    [">=3.9,!=3.9.1,<3.12", "3.11"],
  ])("Python %s", (range, version) =>
    expect(
      plan({ "main.py": "", "pyproject.toml": `[project]\nrequires-python = "${range}"` }),
    ).toMatchObject({ version }),
  );

  it.each([
    "packages: [apps/*, 'libs/*']\n",
    '"packages":\n- apps/*\n',
    "packages: # all\n  - 'apps/*' # what is deployed\ncatalog:\n  react: ^19\n",
  ])("the packages of pnpm's workspace in %j", (text) => {
    const root = sourcesOf({ "package.json": "{}", "pnpm-workspace.yaml": text });
    const app = sourcesOf({ "package.json": JSON.stringify(start) });
    expect(workspaceOf(app, root, "apps/web")).toMatchObject({ folder: "apps/web" });
  });

  it("what pnpm's file lists beside its packages is none of them", () => {
    const settings = "packages:\n  - apps/*\nonlyBuiltDependencies:\n  - libs/*\n";
    const root = sourcesOf({ "package.json": "{}", "pnpm-workspace.yaml": settings });
    const app = sourcesOf({ "package.json": JSON.stringify(start) });
    expect(workspaceOf(app, root, "libs/web")).toBeNull();
  });

  it.each([
    '[ project ]\nname = "a"\n',
    '["project"]\nname = "a"\n',
    'project.name = "a"\n',
    'project = { name = "a" }\n',
  ])("pyproject.toml's table in %j", (text) =>
    expect(plan({ "main.py": "", "pyproject.toml": text })).toMatchObject({ installer: "pyproject" }),
  );

  it("a table in a string or a comment of pyproject.toml is none", () =>
    expect(plan({ "main.py": "", "pyproject.toml": 'text = """\n[project]\n"""\n' })).toMatchObject({
      installer: null,
    }));

  it("pyproject.toml that is not TOML is refused, as without it the packages would lack", () =>
    expect(() => plan({ "main.py": "", "pyproject.toml": "[project\nname = 1" })).toThrow(
      /pyproject\.toml is not valid TOML/,
    ));

  it.each([
    "[tool.uv]\nworkspace = { members = ['services/*'] }\n",
    '[ tool . "uv" . workspace ]\nmembers = ["services/*"]\n',
    "tool.uv.workspace.members = [\n'services/*', # ]\n]\n",
  ])("the members of uv's workspace in %j", (text) => {
    const root = sourcesOf({ "pyproject.toml": text, "uv.lock": "" });
    const app = sourcesOf({ "pyproject.toml": "project.name = 'api'\n", "main.py": "" });
    expect(repositoryOf(app, root, "services/api")).toMatchObject({ uvMember: "api" });
  });

  it.each([
    '[tools]\nnode = { version = "22" }\n',
    '[tools.node]\nversion = "22.4.1"\n',
    '[tools]\n"core:node" = ["22", "20"]\n',
    'tools.nodejs = "v22"\n',
    '[env]\nnode = "18"\n[tools]\nnode = 22\n',
  ])("mise's Node in %j", (text) => expect(node(start, { "mise.toml": text })).toMatchObject({ major: 22 }));

  it("mise's other tools are named as not installed, and those of the app's own language are not", () => {
    const tools = '[tools]\nnode = "22"\nbun = "1"\npython = "3.12"\n"go:github.com/a/b" = "1"\n';
    const files = { "mise.toml": tools, ".tool-versions": "nodejs 22\nphp 8.3\n" };
    expect(toolNotes(sourcesOf(files), node(start, files))).toEqual([
      ".tool-versions and mise.toml also name php, python and go:github.com/a/b, which Berth does not install: only the tools of the app's own language. Add a Dockerfile if it needs them.",
    ]);
    expect(toolNotes(sourcesOf(files), plan({ ...files, "main.py": "" }))).toEqual([
      expect.stringMatching(/ also name nodejs, php, node, bun and go:/),
    ]);
    expect(toolNotes(sourcesOf({}), node(start))).toEqual([]);
  });

  it.each(["nodeLinker: pnp # fast", '"nodeLinker": pnp', "{ nodeLinker: 'pnp' }"])(
    "Yarn's settings in %j",
    (text) =>
      expect(node(start, { "yarn.lock": "__metadata:\n  version: 8\n", ".yarnrc.yml": text })).toMatchObject({
        plugAndPlay: true,
      }),
  );
});

describe("a start script that builds first", () => {
  const notes = (start: string, overrides = {}) => {
    const files = { "package.json": JSON.stringify({ scripts: { start, build: "tsc" } }) };
    return startNotes(sourcesOf(files), plan(files, overrides));
  };
  const started = (scripts: object, files = {}, overrides = {}) => {
    const found = node({ name: "app", scripts }, files, overrides);
    return found.kind === "node" ? found.startCommand : found.kind;
  };

  it.each([
    ["npm run build && node dist/server.js", "node dist/server.js"],
    ["pnpm build && NODE_ENV=production node .", "NODE_ENV=production node ."],
    ["tsc --build&&node dist", "node dist"],
    ["npm run build && npm run migrate && node .", "npm run migrate && node ."],
    ["yarn build && echo '\n# a' && node .", "echo '\n# a' && node ."],
  ])("is run without its build, which is done by then: %j", (start, rest) =>
    expect(started({ start, build: "tsc --build" })).toBe(rest),
  );

  it("builds in a script before it, which is not run", () =>
    expect(started({ prestart: "npm run build", start: "node dist", build: "tsc" })).toBe("node dist"));

  it("for a dev server leaves files", () =>
    expect(started({ start: "npm run build && vite preview", build: "vite build" })).toBe("site"));

  it.each([
    ["other code", { start: "npm run build:api && node .", build: "tsc" }],
    ["more than the build", { prestart: "npm run build && npm run seed", start: "node .", build: "tsc" }],
    [
      "a build of its own after another script",
      { prestart: "echo", start: "npm run build && node .", build: "tsc" },
    ],
    ["for what npm tells its scripts", { start: "npm run build && node $npm_package_main", build: "tsc" }],
    [
      "in turn with what comes after it",
      { start: "npm run build && node .", build: "tsc", poststart: "echo" },
    ],
  ])("is run whole where it builds %s", (_, scripts) => expect(started(scripts)).toBe("npm start"));

  it("is run whole by Yarn's Plug'n'Play, without which Node finds no package", () => {
    const scripts = { start: "yarn build && node .", build: "tsc" };
    const files = { "yarn.lock": "__metadata:\n  version: 8\n", ".pnp.cjs": "" };
    expect(started(scripts, files)).toBe("yarn start");
  });

  it("is named where the owner's command builds the app", () =>
    expect(notes("npm run build && node dist", { buildCommand: "make" })).toEqual([
      "The start script builds the app each time it starts, in the memory of its pack, though it is built by then: set startCommand to node dist.",
    ]));

  it.each([
    ["tsc -p . && node dist", " node dist"],
    ["tsc -p . && echo '\n# a' && node .", " what comes after that"],
  ])("by another command than the build is named: %j", (start, rest) =>
    expect(notes(start)).toEqual([
      `The start script builds the app each time it starts, in the memory of its pack, though it is built by then: set startCommand to${rest}.`,
    ]),
  );

  it("by another script than build, as in Fastify's template for TypeScript, is named with that script", () => {
    const scripts = { start: "npm run build:ts && fastify start -l info dist/app.js", "build:ts": "tsc" };
    const files = { "package.json": JSON.stringify({ scripts }), "package-lock.json": "{}" };
    expect(startNotes(sourcesOf(files), plan(files))).toEqual([
      "The start script builds the app each time it starts, in the memory of its pack: set buildCommand to npm run build:ts, and startCommand to fastify start -l info dist/app.js.",
    ]);
  });

  it.each(["node dist", "next build-info && node .", "npm run builder && node ."])(
    "is not this one: %j",
    (start) => expect(notes(start)).toEqual([]),
  );

  it("is not looked at where another command starts the app", () =>
    expect(notes("npm run build && node .", { startCommand: "node ." })).toEqual([]));
});
