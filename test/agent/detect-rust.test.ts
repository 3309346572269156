import { describe, expect, it } from "vitest";
import { detect } from "../../agent/image-build/detect/index.ts";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { sourcesOf } from "../support/sources.ts";
import { dockerfileWith, none, plan, type Files } from "../support/detected.ts";

const variables = { plain: ["API_URL"], secret: [], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);

const app = { "Cargo.toml": '[package]\nname = "shop"\n', "src/main.rs": "" };
const tool = '[[bin]]\nname = "migrate"\npath = "src/bin/migrate.rs"\n';

describe("a Rust app", () => {
  it("is compiled with Cargo's caches kept, and its program and its own files are in the image", () =>
    expect(dockerfile({ ...app, "Cargo.lock": '[[package]]\nname = "openssl-sys"\n' })).toMatchSnapshot());

  it("for browsers is compiled where something starts a server of its own", () => {
    expect(plan({ ...app, "Trunk.toml": "", Procfile: "web: shop" })).toMatchObject({ kind: "rust" });
    expect(plan({ ...app, "Trunk.toml": "" }, { startCommand: "shop" })).toMatchObject({ kind: "rust" });
  });

  it.each<[string, Files, string | null]>([
    ["its package", app, "shop"],
    [
      "default-run",
      { "Cargo.toml": '[package]\nname = "shop"\ndefault-run = "web" # not the tool\n' },
      "web",
    ],
    ["the only [[bin]]", { "Cargo.toml": '[package]\nname = "a"\n\n[[bin]]\nname = "web"\n' }, "web"],
    [
      "its package beside a tool of its own",
      { "Cargo.toml": `[package]\nname = "shop"\nedition = "2021"\n${tool}`, "src/main.rs": "" },
      "shop",
    ],
    [
      "its package, as autobins asks, beside a tool of its own",
      { "Cargo.toml": `[package]\nname = "shop"\nautobins = true\n${tool}`, "src/main.rs": "" },
      "shop",
    ],
    [
      "the only [[bin]] where autobins leaves src/main.rs out",
      {
        "Cargo.toml": `[package]\nname = "shop"\nedition = "2021"\nautobins = false\n${tool}`,
        "src/main.rs": "",
      },
      "migrate",
    ],
    [
      "the only [[bin]] where edition 2015 leaves src/main.rs out",
      { "Cargo.toml": `[package]\nname = "shop"\n${tool}`, "src/main.rs": "" },
      "migrate",
    ],
    [
      "the only [[bin]] where the edition that is named is 2015",
      { "Cargo.toml": `[package]\nname = "shop"\nedition = "2015"\n${tool}`, "src/main.rs": "" },
      "migrate",
    ],
    ...["", 'edition = "2021"\n', "edition.workspace = true\n"].map((edition): [string, Files, string] => [
      "the [[bin]] of src/main.rs",
      {
        "Cargo.toml": `[package]\nname = "shop"\n${edition}${tool}[[bin]]\npath = "src/main.rs"\nname = "web"\n`,
        "src/main.rs": "",
      },
      "web",
    ]),
    [
      "the only [[bin]] without a path",
      { "Cargo.toml": '[package]\nname = "a"\n[[bin]]\nname = "web"\n', "src/main.rs": "" },
      "web",
    ],
    ["nothing", { "Cargo.toml": '[[bin]]\nname = "a"\n[[bin]]\nname = "b"\n' }, null],
    ["nothing in a workspace", { "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n' }, null],
  ])("starts the program that %s names", (_, files, program) =>
    expect(plan(files)).toMatchObject({ kind: "rust", program }),
  );

  it("whose program only the build tells starts the one that it leaves", () => {
    const text = dockerfile({ "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n' });
    expect(text).toContain("The build left more than one program: set startCommand to one of them");
    expect(text).toContain("COPY --from=build /output/app /usr/local/bin/app");
  });

  it("that says how it is started finds its programs where Cargo puts them, and by their names", () => {
    const text = dockerfile(app, { startCommand: "./target/release/shop --web" });
    expect(text).toContain("COPY --from=build --chown=1000:1000 /output/ /app/target/release/");
    expect(text).toContain("COPY --from=build /output/ /usr/local/bin/");
    expect(text).toContain('CMD ["sh","-c","exec ./target/release/shop --web"]');
  });

  it("of Rocket listens on PORT, on every address", () =>
    expect(dockerfile({ ...app, "Cargo.lock": 'name = "rocket"\n' })).toContain(
      "exec env ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=$PORT /usr/local/bin/app",
    ));

  it("has what its crates are compiled with", () => {
    const lock = '[[package]]\nname = "prost-build"\n[[package]]\nname = "clang-sys"\n';
    const [build = ""] = dockerfile({ ...app, "Cargo.lock": lock }).split("\nFROM ");
    expect(build).toContain("apt-get install --yes --no-install-recommends protobuf-compiler libclang-dev ");
    expect(dockerfile(app)).not.toContain("apt-get");
  });

  it("whose queries SQLx has checked is compiled without their database, unless the owner says otherwise", () => {
    const offline = /^ENV CARGO_TARGET_DIR=\/target SQLX_OFFLINE=true$/m;
    const checked = { ...app, ".sqlx/query-1.json": "{}", ".env": "DATABASE_URL=postgres://localhost/shop" };
    expect(dockerfile(checked)).toMatch(offline);
    expect(dockerfile({ ...app, "sqlx-data.json": "{}" })).toMatch(offline);
    expect(dockerfile(app)).not.toMatch(offline);
    const asked = dockerfileWith({ ...variables, plain: ["SQLX_OFFLINE"] })(checked);
    expect(asked).not.toMatch(offline);
    expect(asked).toContain("ARG SQLX_OFFLINE");
  });

  it("beside a Python app that names what starts it is that app's extension", () =>
    expect(plan({ ...app, "pyproject.toml": "[project]\n", "main.py": "" })).toMatchObject({
      kind: "python",
    }));

  it("below the root of a workspace is built with it, and with its lock file", () => {
    const root = { "Cargo.toml": '[workspace]\nmembers = ["crates/web"]\n', "Cargo.lock": "" };
    const repository = repositoryOf(sourcesOf(app), sourcesOf(root), "crates/web");
    const text = generateDockerfile(detect({ ...sourcesOf(app), repository }, none), variables);
    expect(text).toContain("WORKDIR /app/crates/web");
    expect(text).toContain("cargo build --release --locked");
    const checked = { ...repository!, root: sourcesOf({ ...root, ".sqlx/query-1.json": "" }) };
    expect(generateDockerfile(detect({ ...sourcesOf(app), repository: checked }, none), variables)).toContain(
      "SQLX_OFFLINE=true",
    );
    const alone = { ...app, "Cargo.toml": "[workspace]\n[package]\n" };
    expect(repositoryOf(sourcesOf(alone), sourcesOf(root), "crates/web")).toBeNull();
  });
});
