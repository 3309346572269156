import { plain } from "../../../protocol/redact.ts";
import { call } from "../../api/call.ts";
import { Card } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseFrame, databasePath, NotTold, openDatabase, told } from "./frame.tsx";

export const databaseLogs: Screen = {
  path: "/databases/:id/logs",
  async show({ ctx, param }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const log = await told(call(ctx, "getDatabaseLogs", { id: database.id, follow: "0", tail: 500 }));
    const lines = "value" in log && "data" in log.value ? log.value.data : [];
    return databaseFrame(
      opened,
      "logs",
      <Card
        title="The server's log"
        end={<a href={databasePath(database.id, "logs")}>Read again</a>}
        id="database-log"
        live
      >
        {!("value" in log) ? (
          <NotTold database={database} reason={log.reason} />
        ) : lines.length === 0 ? (
          <p class="body soft">The server has not written anything yet.</p>
        ) : (
          <div class="body">
            <p class="soft">The last {lines.length} lines, times in UTC.</p>
            <div class="log" tabindex={0} role="region" aria-label="Log">
              <pre>
                {lines
                  .map(({ at, text }) => `${at.slice(0, 19).replace("T", " ")}  ${plain(text)}\n`)
                  .join("")}
              </pre>
            </div>
          </div>
        )}
      </Card>,
    );
  },
};
