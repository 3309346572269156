import { plain } from "../../../protocol/redact.ts";
import { call } from "../../api/call.ts";
import { LogViewer, PlainLog } from "../kit/log-viewer.tsx";
import { Card } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { streamedLog } from "../kit/streamed-log.tsx";
import { databaseFrame, databasePath, NotTold, openDatabase, told } from "./frame.tsx";

/** What the database's server writes, live; of one that does not run, what it wrote last. */
export const databaseLogs: Screen = {
  path: "/databases/:id/logs",
  async show({ ctx, param, query }) {
    const opened = await openDatabase(ctx, param("id"));
    const { id, name, status } = opened.database;
    const here = databasePath(id, "logs");
    if (status !== "RUNNING") {
      const log = await told(call(ctx, "getDatabaseLogs", { id, follow: "0", tail: 500 }));
      const lines = "value" in log && "data" in log.value ? log.value.data : [];
      return databaseFrame(
        opened,
        "logs",
        <Card title="The server's log" end={<a href={here}>Reload</a>} id="database-log" live>
          {"reason" in log ? (
            <NotTold database={opened.database} reason={log.reason} />
          ) : lines.length === 0 ? (
            <p class="body soft">The server has not written anything yet.</p>
          ) : (
            <div class="body">
              <PlainLog
                mark={lines
                  .map(({ at, text }) => `${at.slice(0, 19).replace("T", " ")}  ${plain(text)}\n`)
                  .join("")}
              />
            </div>
          )}
        </Card>,
      );
    }
    if (query("plain") === "1") {
      const streamed = await streamedLog(ctx, call(ctx, "getDatabaseLogs", { id, follow: "1", tail: 500 }));
      const body =
        typeof streamed === "string" ? <p class="note">{streamed}</p> : <PlainLog mark={streamed.mark} />;
      return {
        ...databaseFrame(opened, "logs", body, { about: [] }),
        ...(typeof streamed !== "string" && { streamed }),
      };
    }
    return databaseFrame(
      opened,
      "logs",
      <LogViewer
        stream={`/api/v1/databases/${id}/logs`}
        kind="running"
        name={name}
        withoutScript={`${here}?plain=1`}
      />,
      { islands: ["log"] },
    );
  },
};
