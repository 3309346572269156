import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { acted, show } from "../../terminal.ts";

export const cancelJob = command("cancel", "Cancel a queued or running job", "cancelCommand")
  .argument("<job>", "id")
  .action(async (id) => {
    const client = await connect();
    show("cancelCommand", await client.call("cancelCommand", { id }, { signal }), (one) =>
      acted(one.id, one.status, "cancel"),
    );
  });
