import { call } from "../../api/call.ts";
import { Charts } from "../charts.tsx";
import { Card } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseFrame, NotTold, openDatabase, told } from "./frame.tsx";

export const databaseMetrics: Screen = {
  path: "/databases/:id/metrics",
  async show({ ctx, param }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const metrics = await told(call(ctx, "getDatabaseMetrics", { id: database.id }));
    return databaseFrame(
      opened,
      "metrics",
      <Card>
        {!("value" in metrics) ? (
          <NotTold database={database} reason={metrics.reason} />
        ) : metrics.value.data.length === 0 ? (
          <p class="body soft">
            Nothing has been measured yet: the first values come after a minute in service.
          </p>
        ) : (
          <div class="body">
            <Charts samples={metrics.value.data} now={ctx.now()} />
          </div>
        )}
      </Card>,
    );
  },
};
