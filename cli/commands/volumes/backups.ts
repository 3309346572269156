import { answered, paged } from "../../answered.ts";
import { command, whole } from "../../command.ts";
import { confirmed, connect, nextCommand, signal } from "../../context.ts";
import { listed } from "../../shown.ts";
import { siteId } from "../../site.ts";
import { safe, show, status } from "../../terminal.ts";
import { untilFinished } from "../backups/wait.ts";

export const backUpVolume = command("backup", "Back a volume up now", "createVolumeBackup")
  .argument("<name>")
  .option("--no-wait", "do not wait until it is stored")
  .action(async (name, options) => {
    const client = await connect();
    const id = await siteId(client);
    const made = await client.call("createVolumeBackup", { id, name }, { signal });
    const done = options.wait ? await untilFinished(client, made.id) : made;
    show("createVolumeBackup", done, (one) => `${one.id} is ${status(one.status)}.`);
  });

export const listVolumeBackups = paged(
  command("backups", "A volume's backups, newest first", "listVolumeBackups"),
)
  .argument("<name>")
  .action(async (name, { limit, cursor }) =>
    answered(
      "listVolumeBackups",
      { id: await siteId(await connect()), name, limit, cursor },
      listed("status", "sizeBytes", "consistent", "trigger", "createdAt", "id"),
    ),
  );

export const scheduleVolumeBackups = command(
  "schedule",
  "Set when a volume is backed up automatically, and how many backups are kept",
  "changeVolume",
)
  .argument("<name>")
  .argument("<schedule>", "daily, weekly, five cron fields in UTC, or off")
  .option("--hour <hour>", "for daily and weekly ones, in UTC", whole)
  .option("--keep <count>", "how many are kept", whole)
  .action(async (name, schedule, { hour, keep }) =>
    answered("changeVolume", {
      id: await siteId(await connect()),
      name,
      backups: {
        schedule: schedule === "off" ? null : schedule,
        ...(hour !== undefined && { hourUtc: hour }),
        ...(keep !== undefined && { keep }),
      },
    }),
  );

export const restoreVolume = command(
  "restore",
  "Restore a backup into a volume; what it replaces is backed up first, if possible",
  "restoreVolume",
)
  .argument("<name>", "of the volume, or a new one beside it")
  .argument("<backup>", "id")
  .action(async (name, backupId) => {
    const client = await connect();
    const id = await siteId(client);
    await confirmed(
      `Replace the contents of ${safe(name)} with ${safe(backupId)}? It is backed up first, and replaced even if that fails.`,
    );
    show(
      "restoreVolume",
      await client.call("restoreVolume", { id, name, backupId }, { signal }),
      () => `Restoring. Its result: ${nextCommand("volumes list")}`,
    );
  });
