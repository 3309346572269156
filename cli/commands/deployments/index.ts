import { group } from "../../command.ts";
import { cancelDeployment } from "./cancel.ts";
import { compareDeployments } from "./compare.ts";
import { explainDeployment } from "./explain.ts";
import { follow } from "./follow.ts";
import { listDeployments } from "./list.ts";
import { deploymentLogs } from "./logs.ts";
import { showDeployment } from "./show.ts";

export const deployments = group("deployments", "See, follow and cancel deployments", [
  listDeployments,
  showDeployment,
  explainDeployment,
  compareDeployments,
  follow,
  deploymentLogs,
  cancelDeployment,
]);
