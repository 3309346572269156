import type { Plan } from "./detect.ts";

/** Base images by role; an operator's mirror may name others. */
export type BaseImages = { node: string; caddy: string };
export const baseImages: BaseImages = { node: "node:24-bookworm-slim", caddy: "caddy:2" };

/** Where the source lies in a context whose Dockerfile is ours, so that the Dockerfile itself is never part of the app. */
export const sourceFolder = "source";

export type BuildVariables = {
  /** Names of plain build-time variables: handed over as build arguments. */
  plain: readonly string[];
  /** Names of secret ones: mounted into the build step only. */
  secret: readonly string[];
  /** Caches are shared between builds of one tenant, never between tenants. */
  cacheId: string;
};

const install = {
  npm: { locked: "npm ci", loose: "npm install", prune: "npm prune --omit=dev", cache: "/root/.npm" },
  pnpm: {
    locked: "corepack pnpm install --frozen-lockfile",
    loose: "corepack pnpm install",
    prune: "corepack pnpm prune --prod",
    cache: "/root/.local/share/pnpm/store",
  },
  yarn: {
    locked: "corepack yarn install --immutable || corepack yarn install --frozen-lockfile",
    loose: "corepack yarn install",
    prune: "true",
    cache: "/usr/local/share/.cache/yarn",
  },
} as const;

/** A JSON-form instruction: the command is one argument of `sh -c`, whatever characters it holds. */
const shell = (command: string): string => JSON.stringify(["sh", "-c", command]);

/** Build variables that are secret are files while the step runs: exported from there, they reach no layer. */
function runWithSecrets(command: string, secrets: readonly string[]): string {
  const mounts = secrets.map((name) => `--mount=type=secret,id=env_${name} `).join("");
  const exports = secrets.map((name) => `export ${name}="$(cat /run/secrets/env_${name})"; `).join("");
  return `RUN ${mounts}${shell(exports + command)}`;
}

/** The Dockerfile for a plan: install cached while the manifests stay, a slim last stage, not run as root. */
export function generateDockerfile(
  plan: Plan,
  variables: BuildVariables,
  images: BaseImages = baseImages,
): string {
  if (plan.kind === "static")
    return [
      `FROM ${images.caddy}`,
      `COPY ${sourceFolder}/ /srv/`,
      "ENV PORT=3000 XDG_DATA_HOME=/tmp XDG_CONFIG_HOME=/tmp",
      "USER 1000:1000",
      `CMD ${shell('exec caddy file-server --root /srv --listen ":$PORT"')}`,
      "",
    ].join("\n");
  const tool = install[plan.packageManager];
  const lines = [
    `FROM ${images.node} AS build`,
    "WORKDIR /app",
    "ENV NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_FUND=false",
    `COPY ${plan.manifests.map((file) => `${sourceFolder}/${file}`).join(" ")} ./`,
  ];
  if (plan.hasDependencies)
    lines.push(
      `RUN --mount=type=cache,id=${variables.cacheId},target=${tool.cache} ${shell(plan.locked ? tool.locked : tool.loose)}`,
    );
  lines.push(...variables.plain.map((name) => `ARG ${name}`), `COPY ${sourceFolder}/ ./`);
  if (plan.buildCommand !== null) lines.push(runWithSecrets(plan.buildCommand, variables.secret));
  if (plan.hasDevDependencies) lines.push(`RUN ${shell(tool.prune)}`);
  lines.push(
    `FROM ${images.node}`,
    "WORKDIR /app",
    "ENV NODE_ENV=production PORT=3000",
    "COPY --from=build --chown=node:node /app /app",
    "USER node",
    `CMD ${shell(`exec ${plan.startCommand}`)}`,
    "",
  );
  return lines.join("\n");
}
