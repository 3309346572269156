import { createEngine } from "../agent/docker/client.ts";
import { openRoutes } from "../agent/ingress/routes.ts";
import { AccessLog } from "../agent/running/access-log.ts";
import { openRequestRecords } from "../agent/running/request-records.ts";

/** The part of the agent that reads an ingress's log, until it is ended. */
const [routesFile = "", statusPort, agentId = "", recordsFile = ""] = process.argv.slice(2);
new AccessLog({
  engine: createEngine({ socketPath: "/var/run/docker.sock" }),
  ingress: openRoutes(routesFile, Number(statusPort)),
  requests: openRequestRecords(recordsFile),
  agentId,
}).watch(1000, new AbortController().signal);
setInterval(() => undefined, 1 << 30);
