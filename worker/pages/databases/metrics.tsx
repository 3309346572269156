import { call } from "../../api/call.ts";
import { listOwnPacks } from "../../services/packs/list.ts";
import type { Screen } from "../kit/screen.ts";
import { Usage, windowOf } from "../kit/usage.tsx";
import { databaseFrame, openDatabase, told } from "./frame.tsx";

export const databaseMetrics: Screen = {
  path: "/databases/:id/metrics",
  async show({ ctx, param, query }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const asked = query("range");
    const [metrics, events, packs] = await Promise.all([
      told(call(ctx, "getDatabaseMetrics", { id: database.id, window: windowOf(asked) })),
      told(call(ctx, "getDatabaseEvents", { id: database.id })),
      listOwnPacks(ctx),
    ]);
    const view = databaseFrame(
      opened,
      "metrics",
      <Usage
        path={`/databases/${database.id}/metrics`}
        asked={asked}
        now={ctx.now()}
        metrics={"value" in metrics ? metrics.value : null}
        events={"value" in events ? events.value.data : []}
        why={"value" in metrics ? null : metrics.reason}
        pack={packs.find(({ id }) => id === database.packId)}
      />,
    );
    return { ...view, islands: ["charts"] };
  },
};
