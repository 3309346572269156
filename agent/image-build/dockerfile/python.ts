import type { BackendPlan } from "../detect/plan.ts";
import type { PythonInstaller, PythonPlan } from "../detect/python.ts";
import {
  appFolder,
  appUser,
  buildStep,
  cache,
  cCompilers,
  compilersOnDemand,
  copySource,
  installAndCopy,
  installDebian,
  installStep,
  runs,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { servedFiles } from "./static.ts";

const environment = "/opt/venv";
const tools = "/opt/tools";

const readPyproject =
  'import sys\ntry: import tomllib\nexcept ImportError: from pip._vendor import tomli as tomllib\nwith open("pyproject.toml", "rb") as file: print("\\n".join(tomllib.load(file)["project"].get("dependencies", [])))';

/** Into the environment that is active. */
const dependencies: Record<PythonInstaller, (plan: PythonPlan) => string> = {
  pip: ({ manifests }) => `pip install -r ${manifests[0]}`,
  pyproject: () =>
    `python -c '${readPyproject}' > /tmp/requirements.txt && pip install -r /tmp/requirements.txt`,
  uv: ({ uvMember }) =>
    `${tools}/bin/uv sync --frozen --no-dev ${uvMember === null ? "--no-install-project" : `--no-install-workspace --package ${uvMember}`}`,
  poetry: () => `${tools}/bin/poetry install --only main --no-root --no-interaction`,
  pipenv: ({ manifests }) =>
    `${tools}/bin/pipenv ${manifests.includes("Pipfile.lock") ? "sync" : "install --skip-lock"}`,
  setup: () => "pip install .",
};
const itself: Partial<Record<PythonInstaller, (plan: PythonPlan) => string>> = {
  pyproject: ({ isDynamic }) => (isDynamic ? "pip install ." : "pip install --no-deps ."),
  uv: () => `${tools}/bin/uv sync --frozen --no-dev`,
};

/** The same for every app that is installed by the same tool. */
export const pythonShared = (tool: "uv" | "poetry" | "pipenv" | null): string[] => [
  runs(compilersOnDemand(cCompilers)),
  runs(`python3 -m venv ${environment}`),
  ...(tool === null
    ? []
    : [
        runs(
          `python3 -m venv ${tools} && ${tools}/bin/pip install --no-cache-dir --disable-pip-version-check ${tool}`,
        ),
      ]),
];

export function pythonDockerfile(
  plan: PythonPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const { installer } = plan;
  const caches = [cache(variables, "python", "/root/.cache")];
  const ownTool = installer === "uv" || installer === "poetry" || installer === "pipenv";
  const own = plan.installCommand;
  const command = own ?? (installer === null ? null : dependencies[installer](plan));
  const install = command === null ? [] : installStep(command, variables, caches);
  const package_ =
    plan.isPackage && installer !== null && own === undefined ? itself[installer]?.(plan) : undefined;
  const paths = `VIRTUAL_ENV=${environment} UV_PROJECT_ENVIRONMENT=${environment} PATH=${environment}/bin:$PATH`;
  const build = [
    `FROM ${images.python} AS build`,
    ...pythonShared(ownTool ? installer : null),
    "WORKDIR /app",
    "ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never POETRY_VIRTUALENVS_CREATE=false PIPENV_VERBOSITY=-1",
    ...installDebian(plan.packages.build),
    `ENV ${paths}`,
    ...installAndCopy(plan, install, copySource(plan)),
    ...(package_ === undefined ? [] : installStep(package_, variables, caches)),
    ...buildStep(plan.buildCommand, variables),
  ];
  if (plan.startCommand === null)
    return [
      ...build,
      ...servedFiles(
        {
          outputs: [plan.output],
          singlePage: plan.singlePage ?? false,
          manifest: plan.output === "site" ? "mkdocs.yml" : null,
        },
        images,
      ),
    ];
  return [
    ...build,
    `FROM ${images.python}`,
    ...installDebian(plan.packages.run),
    `ENV PORT=3000 HOME=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1${plan.sourceFolder ? " PYTHONPATH=/app/src" : ""} VIRTUAL_ENV=${environment} PATH=${environment}/bin:$PATH`,
    `COPY --from=build ${environment} ${environment}`,
    `COPY --from=build --chown=${appUser} /app /app`,
    `WORKDIR ${appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}
