import { call } from "../call.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { asks, changeSite, siteId, siteNamed } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names =
  | "list_env_vars"
  | "set_env_vars"
  | "delete_env_vars"
  | "list_env_history"
  | "restore_env_version"
  | "generate_secret";

export const environmentTools: Tools<Names> = {
  list_env_vars: { run: async (ctx, { site }) => (await siteNamed(ctx, site)).envVariables },
  set_env_vars: {
    async run(ctx, { site, entries, apply = false }) {
      const { id, status } = await siteNamed(ctx, site);
      const envVariables = entries.map(({ secret, ...entry }) => ({ ...entry, encrypted: secret }));
      const changed = await changeSite<"envVariables">(ctx, id, { envVariables });
      if (!apply || status !== "RUNNING") return changed;
      await changeSite<"action">(ctx, id, { action: "restart" }).catch((error: unknown) => {
        if (!(error instanceof AppError)) throw error;
        const { reason } = error.extra;
        const why = typeof reason === "string" ? reason : error.message;
        throw conflict(`The variables are stored, but the site was not restarted with them: ${why}`);
      });
      return { ...changed, restartRequired: false };
    },
  },
  delete_env_vars: {
    run: async (ctx, { site, keys }) =>
      changeSite<"envVariables">(ctx, await siteId(ctx, site), {
        envVariables: keys.map((key) => ({ key, value: null })),
      }),
    async consequence(ctx, { site, keys }) {
      const found = await siteNamed(ctx, site);
      const unknown = keys.filter((key) => !found.envVariables.some((one) => one.key === key));
      if (unknown.length > 0)
        throw conflict(
          `${found.name} has no variables ${unknown.join(", ")}: list_env_vars names those it has.`,
        );
      const { data } = await call(ctx, "listEnvVersions", { id: found.id });
      return asks(
        `Remove ${keys.join(", ")} from the environment of the site ${found.name}, effective at its next restart or deployment.`,
        [found.id, found.updatedAt, data[0]?.version],
      );
    },
  },
  list_env_history: {
    run: async (ctx, { site }) => (await call(ctx, "listEnvVersions", { id: await siteId(ctx, site) })).data,
  },
  restore_env_version: {
    run: async (ctx, { site, version }) =>
      call(ctx, "restoreEnvVersion", { id: await siteId(ctx, site), version }),
    async consequence(ctx, { site, version }) {
      const found = await siteNamed(ctx, site);
      const { data } = await call(ctx, "listEnvVersions", { id: found.id });
      const wanted = data.find((one) => one.version === version);
      if (!wanted) throw conflict(`Version ${version} of the environment of ${found.name} is not kept.`);
      return asks(
        `Replace the environment of the site ${found.name} (${found.envVariables.length} variables) with version ${version} of ${wanted.at} (${wanted.variables} variables), effective at its next restart or deployment.`,
        [found.id, found.updatedAt, data[0]?.version],
      );
    },
  },
  generate_secret: {
    async run(ctx, { site, key, length = 43 }) {
      await call(ctx, "generateSecret", { id: await siteId(ctx, site), key, length });
      return {
        key,
        set: true as const,
        note: "The value is never shown; it takes effect at the next restart or deployment.",
      };
    },
  },
};
