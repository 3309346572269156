import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { confirmed, connect } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { safe } from "../../terminal.ts";

export const endSession = command(
  "end-session",
  "End a server session: its statement is rolled back",
  "endDatabaseSession",
)
  .argument("<database>", "name or id")
  .argument("<session>", "id: berth databases insight")
  .action(async (named, sessionId) => {
    const id = await databaseId(await connect(), named);
    await confirmed(`End the session ${safe(sessionId)}?`);
    await answered("endDatabaseSession", { id, sessionId });
  });
