import type { BackendPlan } from "../detect/plan.ts";
import type { RustPlan } from "../detect/rust.ts";
import {
  appFolder,
  appUser,
  buildStep,
  cache,
  copySource,
  installDebian,
  starts,
  unlessGiven,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";

const target = "/target";
const programs = "/usr/local/bin";
const nothing =
  "The build left no program: add src/main.rs, or a member of the workspace that has one, or set startCommand.";

/** Cargo compares times: the source of a version that was built before may be older than what the cache has of another one. */
const forgetEarlier = `find ${target} -maxdepth 2 -type f -executable -delete; find /app -type f -exec touch {} +`;

/** What Cargo compiles lies in a cache, of which no image is made. */
const collect = (program: string | null): string =>
  program === null
    ? `set -- $(find ${target}/release -maxdepth 1 -type f -executable ! -name "*.so" | sort); ` +
      `if [ $# = 0 ]; then echo "${nothing}" >&2; exit 1; fi; ` +
      'if [ $# != 1 ]; then echo "The build left more than one program: set startCommand to one of them: $(basename -a $* | xargs)." >&2; exit 1; fi; ' +
      "mkdir /output && cp $1 /output/app"
    : `mkdir /output && cp ${target}/release/${program} /output/app`;
const collectAll = `mkdir -p /output && find ${target}/release -maxdepth 1 -type f -executable ! -name "*.so" -exec cp -t /output {} +`;

export function rustDockerfile(
  plan: RustPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const caches = [
    cache(variables, "cargo-registry", "/usr/local/cargo/registry"),
    cache(variables, "cargo-git", "/usr/local/cargo/git"),
    cache(variables, "cargo-target", target),
  ];
  const build = plan.buildCommand ?? `cargo build --release${plan.locked ? " --locked" : ""}`;
  const own = plan.startCommand !== null;
  // Its macros would connect to DATABASE_URL, of the site or of a .env: no build reaches that database.
  const sqlx = plan.asksNoDatabase ? unlessGiven("SQLX_OFFLINE=true", variables) : "";
  const listens = plan.listens === null ? "" : `${plan.listens} `;
  return [
    `FROM ${images.rust} AS build`,
    ...installDebian(plan.compiledWith),
    "WORKDIR /app",
    `ENV CARGO_TARGET_DIR=${target} ${sqlx}`.trimEnd(),
    copySource(plan),
    ...(plan.within === null ? [] : [`WORKDIR ${appFolder(plan)}`]),
    ...buildStep(plan.installCommand ?? null, variables, caches),
    ...buildStep(
      `${forgetEarlier}; ${build} && { ${own ? collectAll : collect(plan.program)}; }`,
      variables,
      caches,
    ),
    `FROM ${images.debian}`,
    ...installDebian(plan.libraries),
    "ENV PORT=3000 HOME=/app",
    // The slim image has no certificates of its own.
    "COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/",
    // Templates and files that the program reads.
    `COPY --from=build --chown=${appUser} /app /app`,
    ...(own
      ? [
          `COPY --from=build /output/ ${programs}/`,
          `COPY --from=build --chown=${appUser} /output/ ${appFolder(plan)}/target/release/`,
        ]
      : [`COPY --from=build /output/app ${programs}/app`]),
    `WORKDIR ${appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand ?? `${listens}${programs}/app`),
  ];
}
