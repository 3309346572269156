import { call } from "../../api/call.ts";
import type { Screen } from "../kit/screen.ts";
import { Usage } from "../kit/usage.tsx";
import { databaseFrame, openDatabase, told } from "./frame.tsx";

export const databaseMetrics: Screen = {
  path: "/databases/:id/metrics",
  async show({ ctx, param, query }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const [metrics, { data: packs }] = await Promise.all([
      told(call(ctx, "getDatabaseMetrics", { id: database.id })),
      call(ctx, "listPacks", { limit: 100 }),
    ]);
    const view = databaseFrame(
      opened,
      "metrics",
      <Usage
        path={`/databases/${database.id}/metrics`}
        asked={query("range")}
        now={ctx.now()}
        samples={"value" in metrics ? metrics.value.data : []}
        why={"value" in metrics ? null : metrics.reason}
        pack={packs.find(({ id }) => id === database.packId)}
      />,
    );
    return { ...view, islands: ["charts"] };
  },
};
