import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { dim, duration, paginated, safe, show, status, table, when } from "../../terminal.ts";

export const listDeployments = paged(
  command("list", "A site's deployments, newest first", "listDeployments"),
  20,
)
  .argument("[site]", "name or id")
  .action(async (site, { limit, cursor }) => {
    const client = await connect();
    const page = await client.call(
      "listDeployments",
      { id: await siteId(client, site), limit, cursor },
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
              safe((error ?? commitMessage ?? "").split("\n")[0]?.slice(0, 60) ?? ""),
            by: ({ trigger }) => trigger,
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
