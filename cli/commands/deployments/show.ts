import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { bold, dim, duration, fields, safe, show, status, when } from "../../terminal.ts";

export const showDeployment = command(
  "show",
  "One deployment, with its steps and why it failed",
  "getDeployment",
)
  .argument("<deployment>", "id")
  .action(async (id) => {
    const client = await connect();
    show("getDeployment", await client.call("getDeployment", { id }, { signal }), (one) =>
      fields({
        Deployment: `${bold(`#${one.number}`)}  ${dim(one.id)}`,
        Status: status(one.status),
        Problem: safe(one.error ?? ""),
        "Waits for": safe(one.waitsFor ?? ""),
        Commit:
          one.commit && `${safe(one.commit.slice(0, 12))} ${safe(one.commitMessage?.split("\n")[0] ?? "")}`,
        "Started by": one.key === null ? one.trigger : `${one.trigger}, by the key ${safe(one.key.name)}`,
        Created: when(one.createdAt),
        Finished: one.finishedAt && when(one.finishedAt),
        Steps: Object.entries(one.durations)
          .flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${duration(ms)}`]))
          .join(" · "),
        "Roll back": one.canRollBack ? nextCommand(`rollback ${one.id}`, one.siteId) : null,
      }),
    );
  });
