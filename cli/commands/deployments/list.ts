import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { cut, dim, duration, paginated, safe, show, status, table, when } from "../../terminal.ts";

export const listDeployments = paged(
  command("list", "A site's deployments, newest first", "listDeployments"),
  20,
)
  .argument("[site]", "name or id")
  .option("--status <status>", "only those with this status, such as FAILED")
  .option("--trigger <trigger>", "only those with this trigger, such as webhook")
  .action(async (site, { limit, cursor, status: state, trigger }) => {
    const client = await connect();
    const page = await client.call(
      "listDeployments",
      {
        id: await siteId(client, site),
        limit,
        cursor,
        status: state as "LIVE" | undefined,
        trigger: trigger as "api" | undefined,
      },
      { signal },
    );
    show("listDeployments", page, ({ data, nextCursor }) =>
      paginated(
        table(
          data,
          {
            "#": ({ number }) => String(number),
            status: (one) => status(one.status),
            commit: ({ commit }) => safe(commit?.slice(0, 8) ?? "–"),
            message: ({ commitMessage, error }) =>
              cut(safe((error ?? commitMessage ?? "").split("\n")[0] ?? ""), 60),
            by: ({ trigger, key }) => (key === null ? trigger : safe(key.name)),
            took: ({ startedAt, finishedAt }) =>
              startedAt && finishedAt ? duration(Date.parse(finishedAt) - Date.parse(startedAt)) : dim("–"),
            when: ({ createdAt }) => when(createdAt),
            id: ({ id }) => dim(id),
          },
          "No deployments yet.",
        ),
        nextCursor,
      ),
    );
  });
