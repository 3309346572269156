import { group } from "../../command.ts";
import { jobLogs } from "../deployments/logs.ts";
import { cancelJob } from "./cancel.ts";
import { listJobs } from "./list.ts";
import { showJob } from "./show.ts";

export const jobs = group("jobs", "A site's commands: one-off (berth exec) and scheduled", [
  listJobs,
  showJob,
  jobLogs,
  cancelJob,
]);
