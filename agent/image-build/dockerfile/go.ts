import { posix } from "node:path";
import type { GoPlan } from "../detect/go.ts";
import type { BackendPlan } from "../detect/plan.ts";
import {
  appFolder,
  appUser,
  buildStep,
  cache,
  copySource,
  installAndCopy,
  installStep,
  starts,
  unlessGiven,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";

export function goDockerfile(
  plan: GoPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const modules = cache(variables, "go-modules", "/go/pkg/mod");
  const caches = [modules, cache(variables, "go-build", "/root/.cache/go-build")];
  const { installCommand } = plan;
  const download =
    plan.downloads || installCommand !== undefined
      ? installStep(installCommand ?? "go mod download", variables, [modules])
      : [];
  const program = posix.resolve(appFolder(plan), plan.program);
  const compile = `go build -trimpath -ldflags='-s -w' -o ${program} ${plan.main}`;
  const environment = unlessGiven(
    `GOTOOLCHAIN=auto CGO_ENABLED=${plan.needsC ? 1 : 0}${plan.vendored ? " GOFLAGS=-mod=vendor" : ""}`,
    variables,
  );
  return [
    `FROM ${images.go} AS build`,
    "WORKDIR /app",
    // The image allows its own toolchain only, and may be older than what go.mod asks for.
    ...(environment === "" ? [] : [`ENV ${environment}`]),
    ...installAndCopy({ ...plan, needsSource: installCommand !== undefined }, download, copySource(plan)),
    ...buildStep(plan.buildCommand ?? compile, variables, caches),
    `FROM ${images.debian}`,
    "ENV PORT=3000 HOME=/app",
    // The slim image has no certificates of its own.
    "COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/",
    // Templates and files that the program reads.
    `COPY --from=build --chown=${appUser} /app /app`,
    `WORKDIR ${appFolder(plan)}`,
    ...(plan.main === null || program.startsWith("/app/") ? [] : [`COPY --from=build ${program} ${program}`]),
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}
