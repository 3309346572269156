import type { ToolName } from "../../protocol/api/tools.ts";
import type { Tools } from "./tool.ts";
import { backupTools } from "./tools/backups.ts";
import { billingTools } from "./tools/billing.ts";
import { databaseTools } from "./tools/databases.ts";
import { deploymentTools } from "./tools/deployments.ts";
import { domainTools } from "./tools/domains.ts";
import { environmentTools } from "./tools/environment.ts";
import { jobTools } from "./tools/jobs.ts";
import { runningTools } from "./tools/running.ts";
import { siteTools } from "./tools/sites.ts";

/** All tools by name; one listed in `protocol/api/tools.ts` without an implementation does not compile. */
export const catalogue: Tools<ToolName> = {
  ...siteTools,
  ...deploymentTools,
  ...runningTools,
  ...domainTools,
  ...environmentTools,
  ...databaseTools,
  ...backupTools,
  ...jobTools,
  ...billingTools,
};
