import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { saveTo } from "../../download.ts";
import { say } from "../../terminal.ts";

export const downloadBackup = command("download", "Download a backup", "savedFile")
  .argument("<backup>", "id")
  .argument("[file]", "where to; - is standard output; default: the id")
  .option("--force", "replace the file")
  .action(async (id, file, { force }) => {
    const client = await connect();
    const { url } = await client.call("linkBackup", { id }, { signal });
    const { status } = await client.call("getBackup", { id }, { signal });
    if (status === "FAILED")
      say("This backup failed: its file may be damaged or need changes before it can be loaded.");
    const target = file ?? `${id}.backup`;
    await saveTo(await client.file({ url }, { signal }), target, force);
  });
