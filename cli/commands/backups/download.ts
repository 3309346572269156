import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { saveTo } from "../../download.ts";
import { say } from "../../terminal.ts";

/** The service's own name for the file, which says whose it is, of when, and of what kind. */
const nameOf = (response: Response): string | undefined =>
  /filename="(\w[\w.-]*)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];

export const downloadBackup = command("download", "Download a backup", "savedFile")
  .argument("<backup>", "id")
  .argument(
    "[file]",
    "where to; - is standard output; default: what it is of, and when, such as shop-2026-11-30T0308Z.sql.gz",
  )
  .option("--force", "replace the file")
  .action(async (id, file, { force }) => {
    const client = await connect();
    const { url } = await client.call("linkBackup", { id }, { signal });
    const { status } = await client.call("getBackup", { id }, { signal });
    if (status === "FAILED")
      say("This backup failed: its file may be damaged or need changes before it can be loaded.");
    const response = await client.file({ url }, { signal });
    await saveTo(response, file ?? nameOf(response) ?? `${id}.backup`, force);
  });
