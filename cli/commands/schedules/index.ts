import { group } from "../../command.ts";
import { createSchedule } from "./create.ts";
import { listSchedules } from "./list.ts";
import { deleteSchedule } from "./remove.ts";
import { setSchedule } from "./set.ts";

export const schedules = group("schedules", "Commands on a cron schedule", [
  listSchedules,
  createSchedule,
  setSchedule,
  deleteSchedule,
]);
