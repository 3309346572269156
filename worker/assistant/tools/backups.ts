import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { databaseId, databaseNamed, reachOfDatabase, siteId, siteNamed } from "../resources.ts";
import { Revealed, type Tools } from "../tool.ts";

type Names =
  | "create_backup"
  | "list_backups"
  | "verify_backup"
  | "restore_backup"
  | "delete_backup"
  | "set_backup_schedule"
  | "get_backup_download_link"
  | "browse_files"
  | "list_volumes"
  | "create_volume"
  | "delete_volume";

const about = async (ctx: Ctx, backup: string) => {
  const { databaseName, createdAt, status } = await call(ctx, "getBackup", { id: backup });
  return `the backup of ${databaseName} of ${createdAt} (${status})`;
};

export const backupTools: Tools<Names> = {
  create_backup: { run: async (ctx, { db }) => call(ctx, "createBackup", { id: await databaseId(ctx, db) }) },
  list_backups: {
    async run(ctx, { db, limit = 20 }) {
      const { data } =
        db === undefined
          ? await call(ctx, "listAllBackups", { limit })
          : await call(ctx, "listBackups", { id: await databaseId(ctx, db), limit });
      return data;
    },
  },
  verify_backup: { run: (ctx, { backup }) => call(ctx, "verifyBackup", { id: backup }) },
  restore_backup: {
    run: async (ctx, { db, backup }) =>
      call(ctx, "restoreDatabase", { id: await databaseId(ctx, db), backupId: backup }),
    async consequence(ctx, { db, backup }) {
      const found = await databaseNamed(ctx, db);
      return {
        summary: `Replace all data of the database ${found.name} with ${await about(ctx, backup)}; a backup of the present data is taken first. ${await reachOfDatabase(ctx, found)}`,
        version: found.updatedAt,
      };
    },
  },
  delete_backup: {
    run: (ctx, { backup }) => call(ctx, "deleteBackup", { id: backup }),
    consequence: async (ctx, { backup }) => ({
      summary: `Delete ${await about(ctx, backup)} permanently.`,
      version: null,
    }),
  },
  set_backup_schedule: {
    run: async (ctx, { db, settings }) =>
      call(ctx, "patchDatabase", { id: await databaseId(ctx, db), backups: settings }),
  },
  get_backup_download_link: {
    async run(ctx, { backup }) {
      const { url, expiresAt } = await call(ctx, "linkBackup", { id: backup });
      return new Revealed(
        { shown: "The address is on the person's screen.", expiresAt },
        `Download ${backup} until ${expiresAt}: ${url}`,
      );
    },
    consequence: async (ctx, { backup }) => ({
      summary: `Show a short-lived address here with which anyone can download ${await about(ctx, backup)}.`,
      version: null,
    }),
  },
  browse_files: {
    async run(ctx, { site, path = "/", volume }) {
      const id = await siteId(ctx, site);
      return call(ctx, "browseFiles", { id, path, ...(volume !== undefined && { volume }) });
    },
  },
  list_volumes: { run: async (ctx, { site }) => call(ctx, "listVolumes", { id: await siteId(ctx, site) }) },
  create_volume: {
    async run(ctx, { site, name, path }) {
      const { id, volumes } = await siteNamed(ctx, site);
      return call(ctx, "patchSite", { id, settings: { volumes: [...volumes, { name, mountPath: path }] } });
    },
  },
  delete_volume: {
    run: async (ctx, { site, name }) => call(ctx, "removeVolume", { id: await siteId(ctx, site), name }),
    async consequence(ctx, { site, name }) {
      const found = await siteNamed(ctx, site);
      return {
        summary: `Delete the volume ${name} of the site ${found.name} with all its data. There is no backup of it.`,
        version: found.updatedAt,
      };
    },
  },
};
