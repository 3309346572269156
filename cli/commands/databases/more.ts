import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { confirmed, connect } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { safe } from "../../terminal.ts";

export const databaseDisk = command("disk", "What a database takes of its host's disk", "getDatabaseDisk")
  .argument("<database>", "name or id")
  .action(async (named) => answered("getDatabaseDisk", { id: await databaseId(await connect(), named) }));

export const resizeDatabase = command("resize", "Change the pack of a database", "patchDatabase")
  .argument("<database>", "name or id")
  .argument("<pack>", "id: berth packs list")
  .action(async (named, packId) =>
    answered("patchDatabase", { id: await databaseId(await connect(), named), packId }),
  );

export const endSession = command(
  "end-session",
  "End a session of the server: what it runs is rolled back",
  "endDatabaseSession",
)
  .argument("<database>", "name or id")
  .argument("<session>", "id: berth databases insight")
  .action(async (named, sessionId) => {
    const id = await databaseId(await connect(), named);
    await confirmed(`End the session ${safe(sessionId)}?`);
    await answered("endDatabaseSession", { id, sessionId });
  });
