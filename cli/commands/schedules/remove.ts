import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { show } from "../../terminal.ts";

export const deleteSchedule = command("delete", "Delete a schedule; its past runs stay", "deleteSchedule")
  .argument("<schedule>", "id")
  .action(async (id) => {
    const client = await connect();
    show("deleteSchedule", await client.call("deleteSchedule", { id }, { signal }), () => "Deleted.");
  });
