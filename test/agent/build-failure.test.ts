import { describe, expect, it } from "vitest";
import { buildFailure } from "../../agent/image-build/build-failure.ts";
import { BuildFailed } from "../../agent/docker/buildkit.ts";

const told = (message: string, ...lines: string[]) => buildFailure(new BuildFailed(message, lines), 2048);

const noToken = /code 1\. The package registry got no valid token: set the variable .*scope build or both/;

describe("a build that failed", () => {
  it.each([
    ["executor failed running [sh -c npm run build]: exit code: 2", "npm run build"],
    ["executor failed running [/bin/sh -c make [all]]: exit code: 2", "make [all]"],
    ['process "/bin/sh -c npm run build" did not complete successfully: exit code: 2', "npm run build"],
    [
      'executor failed running [sh -c export A="$(cat /run/secrets/env_A; echo .)"; A="${A%.}"; export B="$(cat /run/secrets/env_B; echo .)"; B="${B%.}"; npm run build]: exit code: 2',
      "npm run build",
    ],
    [
      String.raw`process "sh -c export A=\"$(cat /run/secrets/env_A; echo .)\"; A=\"$` +
        String.raw`{A%.}\"; npm run build" did not complete successfully: exit code: 2`,
      "npm run build",
    ],
    [
      "executor failed running [sh -c npm run build --logs-dir=/tmp/npm || { grep -q a /tmp/npm || exit 1; }]: exit code: 2",
      "npm run build",
    ],
    [
      'executor failed running [sh -c export NODE_COMPILE_CACHE=/opt/npm-code; export A="$(cat /run/secrets/env_A; echo .)"; A="${A%.}"; npm ci]: exit code: 2',
      "npm ci",
    ],
    [
      "executor failed running [sh -c export NODE_COMPILE_CACHE=/opt/npm-code; export NPM_CONFIG_UPDATE_NOTIFIER=false NODE_OPTIONS=--max-old-space-size=1792; { npm ci --logs-dir=/tmp/npm || { grep -q a /tmp/npm || exit 1; }; } && rm -rf /tmp/npm]: exit code: 2",
      "npm ci",
    ],
    [
      "executor failed running [sh -c ( npm run build ) && ( for folder in dist; do exit 1; done )]: exit code: 2",
      "npm run build",
    ],
    [
      String.raw`process "sh -c (\n(cd web && npm run build) # all\n) && ( for folder in dist; do exit 1; done )" did not complete successfully: exit code: 2`,
      "(cd web && npm run build) # all",
    ],
  ])(
    "is told by its step as the owner wrote it, its exit code and its last lines: %s",
    (message, command) => {
      expect(told(message, "src/a.ts(3,5):", "  error TS2322")).toBe(
        `The build failed: "${command}" exited with code 2. Its last lines: src/a.ts(3,5): | error TS2322`,
      );
    },
  );

  it("is told by what a step of ours says of it, without that step's script", () =>
    expect(
      told("executor failed running [sh -c for folder in dist; do]: exit code: 1", "The build left no x."),
    ).toBe("The build left no x."));

  it("is not put down to the repository where the connection to the engine broke", () =>
    expect(told("rpc error: code = Unavailable desc = transport is closing")).toBe(
      "The build was interrupted, because the host's connection to its Docker engine broke: deploy again.",
    ));

  const exited = "executor failed running [sh -c make]: exit code: 1";

  it("shows as many whole lines as fit, and none of which only a part would", () => {
    const long = "x".repeat(1400);
    expect(told(exited, "y".repeat(200), long, "last")).toMatch(/Its last lines: x{1400} \| last$/);
    expect(told(exited, "z".repeat(2000))).toMatch(/exited with code 1\. See the deployment's log\.$/);
    expect(told(exited)).toMatch(/It printed nothing\.$/);
  });

  it("shows the first error where warnings or other errors that follow from it would hide it", () => {
    const warnings = Array.from({ length: 60 }, (_, at) => `warning: unused import ${at}`);
    const error = "src/app.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.";
    expect(told(exited, "compiling", error, "src/b.ts(1,1): error TS1005", ...warnings)).toContain(
      `Its last lines: ${error} | … | warning: unused import 45 | `,
    );
    expect(told(exited, error, "warning: unused")).toMatch(
      /Its last lines: src\/app\.ts.* \| warning: unused$/,
    );
    expect(told(exited, `error: ${"x".repeat(2000)}`, ...warnings)).toMatch(/Its last lines: warning/);
  });

  it.each<[string, string[], RegExp]>([
    [
      "a lock file of npm's that is out of date",
      [
        "npm error code EUSAGE",
        "npm error",
        "npm error `npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are in sync. Please update your lock file with `npm install` before continuing.",
        ...Array.from({ length: 90 }, (_, n) => `npm error Missing: some-package-${n}@1.0.0 from lock file`),
        "npm error",
        "npm error Clean install a project",
        "npm error Usage:",
        "npm error npm ci",
        'npm error Run "npm help ci" for more info',
        "npm error A complete log of this run can be found in: /root/.npm/_logs/1-debug-0.log",
      ],
      /code 1\. package-lock\.json does not match package\.json: run npm install, if necessary .*, and commit both\. Its last lines: .*some-package-89@1\.0\.0 from lock file$/,
    ],
    [
      "a token that Yarn 1 does not find",
      ["error Error: Failed to replace env in config: ${NPM_TOKEN}"],
      noToken,
    ],
    [
      "a token that Yarn 4 does not find",
      ["Usage Error: Environment variable not found (NPM_TOKEN) in /app/.yarnrc.yml"],
      noToken,
    ],
    [
      "a token that npm's registry does not take",
      ["npm error code E401", "npm error Unable to authenticate, need: Basic"],
      noToken,
    ],
    [
      "a token that pnpm's does not",
      [" ERR_PNPM_FETCH_401  GET https://npm.example.com/@shop%2Fui: Unauthorized - 401"],
      noToken,
    ],
    [
      "a webpack that is older than the OpenSSL of today",
      ["Error: error:0308010C:digital envelope routines::unsupported", "  code: 'ERR_OSSL_EVP_UNSUPPORTED'"],
      /code 1\. Its webpack is older than the OpenSSL of this Node: .*react-scripts 5.*NODE_OPTIONS.*--openssl-legacy-provider/,
    ],
    [
      "one of Bun's",
      [
        "error: lockfile had changes, but lockfile is frozen",
        "note: try re-running without --frozen-lockfile",
      ],
      /code 1\. Bun's lock file does not match package\.json: run bun install, and commit both\./,
    ],
    [
      "one of pnpm's",
      [' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile"', "Failure reason:"],
      /code 1\. pnpm-lock\.yaml does not match package\.json: run pnpm install, and commit both\. Its last lines: ERR_PNPM/,
    ],
    [
      "one of Yarn's",
      ["➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden."],
      /yarn\.lock does not match package\.json: run yarn install, and commit both/,
    ],
    [
      "packages that exclude each other",
      ["npm error code ERESOLVE", "npm error ERESOLVE could not resolve"],
      /code 1\. Packages require conflicting versions: .* legacy-peer-deps=true\. Its last lines/,
    ],
    [
      "versions that npm does not know",
      ["npm error code EUNSUPPORTEDPROTOCOL", 'npm error Unsupported URL Type "workspace:": workspace:*'],
      /commit the lock file of your package manager at the workspace root, and set rootDir .* Its last lines: npm error code/,
    ],
    [
      "a version of Node that a package refuses",
      ["npm error code EBADENGINE", 'npm error notsup Required: {"node":">=26"}'],
      /asks for another version of Node: name it in \.nvmrc or in "engines" of package\.json\. Its last lines: .*>=26/,
    ],
    [
      "a commit that is asked of Git, as Node shows what that wrote",
      [
        "/bin/sh: 1: git: not found",
        "Error: Command failed: git rev-parse HEAD",
        "    at execSync (node:child_process:963:15) {",
        "  status: 127,",
        "  signal: null,",
        "  output: [",
        "    null,",
        "    Buffer(0) [Uint8Array] [],",
        "    Buffer(27) [Uint8Array] [",
        "       47,  98, 105, 110,  47, 115, 104,",
        "      102, 111, 117, 110, 100,  10",
        "    ]",
        "  ],",
        "  pid: 25,",
        "  stderr: Buffer(27) [Uint8Array] [",
        "       47,  98",
        "  ]",
        "}",
      ],
      /an Aptfile or your Dockerfile installs it, .* from BERTH_COMMIT instead\. Its last lines: \/bin\/sh: 1: git: not found \| Error: Command failed: git rev-parse HEAD \| status: 127, \| \}$/,
    ],
    [
      "a Python package whose version is Git's",
      [
        "LookupError: Error getting the version from source `vcs`: setuptools-scm was unable to detect version for /app.",
        "Make sure you're either building from a fully intact git repository or PyPI tarballs.",
      ],
      /tags, which a build does not have: set the build variable SETUPTOOLS_SCM_PRETEND_VERSION to a version/,
    ],
    [
      "a package that cannot be compiled",
      ["npm error gyp ERR! build error", "npm error gyp ERR! stack Error: `make` failed with exit code: 2"],
      /could not be: use a version of it that comes compiled .* Its last lines: .*`make` failed with exit code: 2$/,
    ],
    [
      "a missing C header",
      [
        "      src/conn.c:5:10: fatal error: libpq-fe.h: No such file or directory",
        "error: command 'gcc' failed",
      ],
      /code 1\. A package had to be compiled with a C header .* Aptfile \(libpq-dev for PostgreSQL\).* lines: .*libpq-fe\.h/,
    ],
    [
      "a version of Python that a package refuses",
      ["ERROR: Package 'shop' requires a different Python: 3.13.5 not in '<3.12,>=3.8'"],
      /code 1\. A package requires another version of Python: name that in \.python-version/,
    ],
    [
      "versions that another Python would take",
      [
        "ERROR: Ignored the following versions that require a different python version: 1.21.0 Requires-Python <3.11",
        "ERROR: No matching distribution found for numpy==1.21.0",
      ],
      /code 1\. A package requires another version of Python: .* numpy==1\.21\.0$/,
    ],
    [
      "Cargo's lock file",
      ["error: cannot update the lock file /app/Cargo.lock because --locked was passed to prevent this"],
      /code 1\. Cargo\.lock does not match Cargo\.toml: run cargo check, and commit both\./,
    ],
    [
      "Bundler's lock file",
      [
        "The dependencies in your gemfile changed, but the lockfile can't be updated because frozen mode is set",
      ],
      /code 1\. Gemfile\.lock does not match Gemfile: run bundle install, and commit both\./,
    ],
    [
      "a heap that is full",
      [
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "----- Native stack trace -----",
        " 1: 0xe3e0d9 node::OOMErrorHandler(char const*, v8::OOMDetails const&) [node]",
        "14: 0x7f2f2bd9a1ca __libc_start_main [/lib/x86_64-linux-gnu/libc.so.6]",
        "Aborted (core dumped)",
      ],
      /code 1\. Its Node was out of memory, of which a build has 2048 MB: reduce its memory use\. Its last lines: FATAL ERROR: .* \| Aborted \(core dumped\)$/,
    ],
    [
      "an error whose stack is long",
      [
        "TypeError: API_URL is not set",
        ...Array.from({ length: 30 }, (_, n) => `    at f${n} (file:///app/a.js:1:${n})`),
      ],
      /Its last lines: TypeError: API_URL is not set$/,
    ],
    [
      "how far pnpm was",
      [
        "Progress: resolved 299, reused 0, downloaded 296, added 235",
        "apps/web                                 | Progress: resolved 1, reused 0, downloaded 0, added 0",
        " ERR_PNPM_FETCH_404  GET https://registry.npmjs.org/a: Not Found - 404",
        "Progress: resolved 299, reused 0, downloaded 296, added 296, done",
      ],
      /code 1\. Its last lines: ERR_PNPM_FETCH_404 {2}GET \S+ Not Found - 404$/,
    ],
  ])("says first what is known of %s, and leaves out what tells nothing", (_, lines, expected) =>
    expect(told(exited, ...lines)).toMatch(expected),
  );

  const solve = "failed to solve with frontend dockerfile.v0: failed to create LLB definition: ";
  it.each([
    [
      `${solve}failed to do request: Head "https://registry-1.docker.io/v2/library/node/manifests/24-alpine": dial tcp: no such host`,
      "The image node:24-alpine, which the Dockerfile builds on, could not be pulled (dial tcp: no such host): deploy again later, or build on an image that this host can reach.",
    ],
    [
      `${solve}failed to do request: Head "https://ghcr.io/v2/a/b/manifests/sha256:00": dial tcp: i/o timeout`,
      "The image ghcr.io/a/b@sha256:00, which the Dockerfile builds on, could not be pulled (dial tcp: i/o timeout): deploy again later, or build on an image that this host can reach.",
    ],
    [
      `${solve}docker.io/library/node:99: not found`,
      "The image node:99, which the Dockerfile builds on, could not be pulled (not found): check its name and tag, and whether everybody may pull it.",
    ],
    [
      "failed to solve: a/b:1: failed to resolve source metadata for docker.io/a/b:1: pull access denied, repository does not exist",
      "The image a/b:1, which the Dockerfile builds on, could not be pulled (pull access denied, repository does not exist): check its name and tag, and whether everybody may pull it.",
    ],
  ])("on an image that cannot be pulled names it: %s", (message, expected) =>
    expect(told(message)).toBe(expected),
  );

  it.each([
    'failed to compute cache key: "/app/public" not found: not found',
    'failed to solve: failed to compute cache key: failed to calculate checksum of ref a1b2::c3d4: "/app/public": not found',
  ])(
    "because the repository's Dockerfile copies what is not there names it and the way without: %s",
    (message) => {
      expect(told(message)).toMatch(
        /^The Dockerfile copies \/app\/public, which does not exist: .*; or set builder to detect to build the repository without its Dockerfile\.$/,
      );
      expect(buildFailure(new BuildFailed(message, []), 2048, null, "apps/api")).toMatch(
        /^The Dockerfile copies \/app\/public, which does not exist in apps\/api, the folder that it is built from\. If .* the root of the repository, remove rootDir and set dockerfilePath to its path from there\. Otherwise create it, /,
      );
      // One of ours is not the owner's to correct.
      expect(buildFailure(new BuildFailed(message, []), 2048, "FROM scratch\n")).toMatch(
        /^The build failed: /,
      );
    },
  );

  it("for a version of Node that the host cannot get says that, too", () => {
    const failed = new BuildFailed(exited, ["npm error code EBADENGINE"]);
    const note = "This host cannot get node:22-bookworm-slim: node:24-bookworm-slim is used instead";
    expect(buildFailure(failed, 2048, `# ${note}.\nFROM node:24-bookworm-slim AS build\n`)).toContain(
      `A package requires another version of Node. ${note}: ask the operator for that image, or use versions`,
    );
  });

  it("for another release of pnpm says which field names it", () =>
    expect(
      told(
        exited,
        " ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment",
        'Your pnpm version is incompatible with "/app".',
      ),
    ).toContain(
      'code 1. package.json asks for another release of its package manager: name that in "packageManager"',
    ));

  it("is told in the engine's words where no step exited", () => {
    expect(told("pull access denied for nothing:9", "some other step")).toBe(
      "The build failed: pull access denied for nothing:9. See the deployment's log.",
    );
  });
});
