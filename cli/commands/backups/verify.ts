import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { show } from "../../terminal.ts";

export const verifyBackup = command(
  "verify",
  "Restore a backup into a temporary server and compare",
  "verifyBackup",
)
  .argument("<backup>", "id")
  .action(async (id) => {
    const client = await connect();
    show(
      "verifyBackup",
      await client.call("verifyBackup", { id }, { signal }),
      (one) => `${one.id} is being verified; ${nextCommand("backups list", null)} shows the result.`,
    );
  });
