import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { cut, duration, fields, safe, show, size, table } from "../../terminal.ts";

const lineOf = (statement: string): string => cut(safe(statement.replaceAll(/\s+/g, " ")), 80);

export const insight = command(
  "insight",
  "Size, connections, and active and slow queries, as the server reports them",
  "getDatabaseInsight",
)
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "getDatabaseInsight",
      await client.call("getDatabaseInsight", { id: await databaseId(client, named) }, { signal }),
      (one) =>
        [
          fields({
            Size: size(one.sizeMb),
            Connections: `${one.connections.used} of ${one.connections.max}`,
            "Cache hits": one.cacheHitRatio === null ? null : `${(one.cacheHitRatio * 100).toFixed(1)}%`,
            Up: duration(one.uptimeSeconds * 1000),
          }),
          "",
          table(
            one.activeQueries,
            {
              id: ({ id }) => safe(id),
              duration: ({ durationMs }) => duration(durationMs),
              "blocked by": ({ blockedBy }) => safe(blockedBy.join(", ")),
              statement: ({ statement }) => lineOf(statement),
            },
            "No active queries.",
          ),
          "",
          table(
            one.slowQueries.slice(0, 10),
            {
              total: ({ totalMs }) => duration(totalMs),
              mean: ({ meanMs }) => duration(meanMs),
              calls: ({ calls }) => String(calls),
              statement: ({ statement }) => lineOf(statement),
            },
            "No slow queries.",
          ),
        ].join("\n"),
    );
  });
