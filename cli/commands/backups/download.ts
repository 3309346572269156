import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { saveTo } from "../../download.ts";

export const downloadBackup = command("download", "Download a backup", "savedFile")
  .argument("<backup>", "id")
  .argument("[file]", "where to; - is standard output; default: the id")
  .option("--force", "replace the file")
  .action(async (id, file, { force }) => {
    const client = await connect();
    const { url } = await client.call("linkBackup", { id }, { signal });
    const target = file ?? `${id}.backup`;
    await saveTo(await client.file({ url }, { signal }), target, force);
  });
