import type { Backup } from "../../../protocol/api/backups.ts";
import { call } from "../call.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import {
  asks,
  asksAboutDatabase,
  changeDatabase,
  changeSite,
  databaseId,
  databaseNamed,
  isGood,
  siteId,
  siteNamed,
} from "../resources.ts";
import { everyItem } from "../../services/page.ts";
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
  const { databaseName, volume, createdAt, status } = await call(ctx, "getBackup", { id: backup });
  const what = volume ? `the volume ${volume.name} of ${volume.siteName}` : databaseName;
  return `the backup of ${what} of ${createdAt} (${status})`;
};

type Named = { db?: string | undefined; site?: string | undefined; volume?: string | undefined };
type Subject = { database: string } | { site: string; volume: string };

/** What is meant: a database, or a volume of a site. @throws AppError invalid_request */
function subjectOf({ db, site, volume }: Named): Subject {
  if (db !== undefined && site === undefined && volume === undefined) return { database: db };
  if (db === undefined && site !== undefined && volume !== undefined) return { site, volume };
  throw invalid("db", "either db, or site and volume");
}

/** What keeping so few of them, newest first, deletes; null: nothing. */
async function lossOf(backups: AsyncIterable<Backup>, keep: number, what: string): Promise<string | null> {
  let [verified, surplus] = [0, 0];
  for await (const { status } of backups) {
    if (verified >= keep && (status === "VERIFIED" || status === "STORED")) surplus++;
    if (status === "VERIFIED") verified++;
  }
  return surplus === 0
    ? null
    : `Keep ${keep} of the backups of ${what}: ${surplus === 1 ? "1 older one is" : `${surplus} older ones are`} deleted.`;
}

export const backupTools: Tools<Names> = {
  create_backup: {
    async run(ctx, input) {
      const of = subjectOf(input);
      return "database" in of
        ? call(ctx, "createBackup", { id: await databaseId(ctx, of.database) })
        : call(ctx, "createVolumeBackup", { id: await siteId(ctx, of.site), name: of.volume });
    },
  },
  list_backups: {
    async run(ctx, { limit = 20, ...named }) {
      const { db, site, volume } = named;
      const of = db === undefined && volume === undefined ? null : subjectOf(named);
      if (of && "database" in of)
        return (await call(ctx, "listBackups", { id: await databaseId(ctx, of.database), limit })).data;
      const id = site === undefined ? undefined : await siteId(ctx, site);
      if (of) return (await call(ctx, "listVolumeBackups", { id: id ?? "", name: of.volume, limit })).data;
      return (await call(ctx, "listAllBackups", { limit, ...(id !== undefined && { siteId: id }) })).data;
    },
  },
  verify_backup: { run: (ctx, { backup }) => call(ctx, "verifyBackup", { id: backup }) },
  restore_backup: {
    async run(ctx, { backup, ...named }) {
      const of = subjectOf(named);
      return "database" in of
        ? call(ctx, "restoreDatabase", { id: await databaseId(ctx, of.database), backupId: backup })
        : call(ctx, "restoreVolume", {
            id: await siteId(ctx, of.site),
            name: of.volume,
            backupId: backup,
          });
    },
    async consequence(ctx, { backup, ...named }) {
      const of = subjectOf(named);
      if ("site" in of) {
        const found = await siteNamed(ctx, of.site);
        return asks(
          `Replace all data of the volume ${of.volume} of the site ${found.name} (${found.status}) with ${await about(ctx, backup)}; a backup of the present data is taken first, and the data is replaced even if that fails. A volume that does not exist yet is created.`,
          [found.id, found.updatedAt],
        );
      }
      return asksAboutDatabase(
        ctx,
        of.database,
        async ({ name }) =>
          `Replace all data of the database ${name} with ${await about(ctx, backup)}; a backup of the present data is taken first, and the data is replaced even if that fails.`,
      );
    },
  },
  delete_backup: {
    run: (ctx, { backup }) => call(ctx, "deleteBackup", { id: backup }),
    consequence: async (ctx, { backup }) => asks(`Delete ${await about(ctx, backup)} permanently.`, backup),
  },
  set_backup_schedule: {
    async run(ctx, { settings, ...named }) {
      const of = subjectOf(named);
      return "database" in of
        ? changeDatabase<"backups">(ctx, await databaseId(ctx, of.database), { backups: settings })
        : call(ctx, "changeVolume", {
            id: await siteId(ctx, of.site),
            name: of.volume,
            backups: settings,
          });
    },
    async consequence(ctx, { settings: { keep }, ...named }) {
      const of = subjectOf(named);
      if (keep === undefined) return null;
      if ("database" in of) {
        const { id, name } = await databaseNamed(ctx, of.database);
        const present = everyItem((cursor) => call(ctx, "listBackups", { id, limit: 100, cursor }));
        const loss = await lossOf(present, keep, `the database ${name}`);
        return loss === null ? null : asksAboutDatabase(ctx, name, () => loss);
      }
      const { id, name } = await siteNamed(ctx, of.site);
      const present = everyItem((cursor) =>
        call(ctx, "listVolumeBackups", { id, name: of.volume, limit: 100, cursor }),
      );
      const loss = await lossOf(present, keep, `the volume ${of.volume} of the site ${name}`);
      return loss === null ? null : asks(loss, id);
    },
  },
  get_backup_download_link: {
    async run(ctx, { backup }) {
      const { url, expiresAt } = await call(ctx, "linkBackup", { id: backup });
      return new Revealed(
        { shown: "The address is on the person's screen.", expiresAt },
        `Download ${backup} until ${expiresAt}: ${url}`,
      );
    },
    consequence: async (ctx, { backup }) =>
      asks(
        `Show a short-lived address here with which anyone can download ${await about(ctx, backup)}.`,
        backup,
      ),
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
      const settings = { volumes: [...volumes, { name, mountPath: path }] };
      return (await changeSite<"settings">(ctx, id, { settings })).volumes;
    },
  },
  delete_volume: {
    run: async (ctx, { site, name }) => call(ctx, "removeVolume", { id: await siteId(ctx, site), name }),
    async consequence(ctx, { site, name }) {
      const found = await siteNamed(ctx, site);
      const volumes = await call(ctx, "listVolumes", { id: found.id });
      if (!volumes.data.some((volume) => volume.name === name))
        throw conflict(`The site ${found.name} keeps no volume ${name}: list_volumes names those it keeps.`);
      const { data } = await call(ctx, "listVolumeBackups", { id: found.id, name, limit: 100 });
      const last = data.find(isGood);
      const backups = last
        ? `Its last backup is of ${last.createdAt} and is kept for 30 days.`
        : "There is no backup of it.";
      return asks(`Delete the volume ${name} of the site ${found.name} with all its data. ${backups}`, [
        found.id,
        found.updatedAt,
        last?.id,
      ]);
    },
  },
};
