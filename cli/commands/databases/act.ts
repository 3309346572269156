import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { acted, show } from "../../terminal.ts";

const acting = (action: "start" | "stop" | "restart", summary: string) =>
  command(action, summary, "patchDatabase")
    .argument("<database>", "name or id")
    .action(async (named) => {
      const client = await connect();
      const answer = await client.call(
        "patchDatabase",
        { id: await databaseId(client, named), action },
        { signal },
      );
      show<"patchDatabase", { action: string }>("patchDatabase", answer, ({ status }) =>
        acted(named, status, action),
      );
    });

export const startDatabase = acting("start", "Start a stopped database");
export const stopDatabase = acting("stop", "Stop a database; its sites cannot reach it");
export const restartDatabase = acting("restart", "Restart a database");
