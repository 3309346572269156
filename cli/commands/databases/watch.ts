import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { printLine } from "../../log-lines.ts";
import { databaseId } from "../../site.ts";
import { show } from "../../terminal.ts";
import { eventsText } from "../events.ts";
import { printLog, sinceTime } from "../logs.ts";
import { metricsText } from "../metrics.ts";

export const databaseLogs = command("logs", "A database server's log", { lines: "logLine" })
  .argument("<database>", "name or id")
  .option("-f, --follow", "keep going until Ctrl-C")
  .option("-n, --tail <lines>", "how many of the latest lines", whole, 100)
  .option("--since <time>", "only later lines: 15m, 2h, 1d or a time")
  .action(async (named, { follow, tail, since }) => {
    const client = await connect();
    const input = {
      id: await databaseId(client, named),
      tail,
      since: since === undefined ? undefined : sinceTime(since, Date.now()),
    };
    await printLog(client, "getDatabaseLogs", input, follow ?? false, (line) => printLine(line));
  });

export const databaseMetrics = command(
  "metrics",
  "CPU, memory, network and disk, minute by minute",
  "getDatabaseMetrics",
)
  .argument("<database>", "name or id")
  .option("--minutes <n>", "how many of the latest minutes", whole, 60)
  .action(async (named, { minutes }) => {
    const client = await connect();
    show(
      "getDatabaseMetrics",
      await client.call("getDatabaseMetrics", { id: await databaseId(client, named) }, { signal }),
      ({ data }) => metricsText(data, minutes),
    );
  });

export const databaseEvents = command("events", "Starts, stops, exits and restores", "getDatabaseEvents")
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "getDatabaseEvents",
      await client.call("getDatabaseEvents", { id: await databaseId(client, named) }, { signal }),
      ({ data }) => eventsText(data),
    );
  });
