import { diskIsFull, saysDiskFull } from "../docker/disk-full.ts";
import type { Engine } from "../docker/engine.ts";
import type { DatabaseExits } from "../running/watch.ts";
import { dataGone } from "./data.ts";
import { saysDataGone } from "./entrypoint.ts";
import { removeEmptyLock } from "./postgresql/empty-lock.ts";

/** Known causes of servers that keep exiting. */
export const databaseExits = (engine: Pick<Engine, "volumes">): DatabaseExits => ({
  repair: (labels) => removeEmptyLock(engine, labels),
  advice(lines) {
    if (saysDiskFull(lines)) return diskIsFull("start it again");
    return saysDataGone(lines) ? dataGone : null;
  },
});
