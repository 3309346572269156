import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { show, status } from "../../terminal.ts";

export const cancelDeployment = command(
  "cancel",
  "Cancel a deployment; the version in service keeps running",
  "cancelDeployment",
)
  .argument("<deployment>", "id")
  .action(async (id) => {
    const client = await connect();
    show(
      "cancelDeployment",
      await client.call("cancelDeployment", { id }, { signal }),
      (one) => `${one.id} is ${status(one.status)}.`,
    );
  });
