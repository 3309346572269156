import type { OperationId } from "../../../client/index.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { lineOf, printLine } from "../../log-lines.ts";

/** The log of a deployment or a job, from its first line. */
const logs = (summary: string, operation: "getDeploymentLogs" | ("getCommandLogs" & OperationId)) =>
  command("logs", summary, { lines: "logLine" })
    .argument("<id>")
    .option("-f, --follow", "until its end")
    .action(async (id, { follow }) => {
      const client = await connect();
      if (follow) {
        for await (const event of client.stream(operation, { id }, { signal })) {
          const line = lineOf(event);
          if (line !== null) printLine(line);
        }
        return;
      }
      for (let cursor: string | undefined; ;) {
        const page = await client.call(operation, { id, cursor }, { signal });
        for (const line of page.data) printLine(line);
        if (page.nextCursor === null) return;
        cursor = page.nextCursor;
      }
    });

export const deploymentLogs = logs("The log of a deployment", "getDeploymentLogs");
export const jobLogs = logs("The output of a job", "getCommandLogs");
