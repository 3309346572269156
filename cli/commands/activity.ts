import { paged } from "../answered.ts";
import { command } from "../command.ts";
import { connect, signal } from "../context.ts";
import { dim, paginated, safe, show, styled, table, when } from "../terminal.ts";

export const activity = paged(
  command("activity", "The audit log of your account: who changed what", "listActivity"),
  30,
)
  .option("--resource <id>", "only changes of this site, database …")
  .option("--actor <kind>", "only by session, key, assistant, operator, webhook, link, host or system")
  .option("--only <what>", "changes, or calls of the assistant's tools")
  .action(async ({ resource, actor, only, limit, cursor }) => {
    const client = await connect();
    const page = await client.call(
      "listActivity",
      { resource, actor: actor as "key" | undefined, only: only as "calls" | undefined, limit, cursor },
      { signal },
    );
    show("listActivity", page, ({ data, nextCursor }) =>
      paginated(
        table(
          data,
          {
            when: ({ at }) => when(at),
            by: ({ actor: kind }) => kind,
            operation: ({ operation }) => safe(operation),
            outcome: ({ outcome }) =>
              outcome === "done" || outcome === "asked" ? outcome : styled("red", safe(outcome)),
            resource: ({ resourceId }) => dim(safe(resourceId ?? "–")),
          },
          "Nothing yet.",
        ),
        nextCursor,
      ),
    );
  });
