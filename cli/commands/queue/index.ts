import { answered, paged } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { connect } from "../../context.ts";
import { listed } from "../../shown.ts";
import { hostId } from "../../site.ts";

const list = paged(command("list", "Work for hosts: what is waiting and why, running or stuck", "listJobs"))
  .option("--state <state>", "waiting, running, stuck or ended; default: waiting and running")
  .option("--host <host>", "only of this host: name or id")
  .option("--account <id>", "only of this account")
  .action(async ({ limit, cursor, state, host, account }) =>
    answered(
      "listJobs",
      {
        limit,
        cursor,
        state: state as "stuck" | undefined,
        hostId: host && (await hostId(await connect(), host)),
        accountId: account,
      },
      listed("kind", "status", "name", "accountEmail", "hostName", "waitsFor", "attempt", "createdAt", "id"),
    ),
  );

const cancel = command(
  "cancel",
  "Cancel work that has not started, or a running deployment or command",
  "cancelJob",
)
  .argument("<job>", "id")
  .action((id) => answered("cancelJob", { id }));

const retry = command("retry", "Request failed work again, where repeating it is safe", "retryJob")
  .argument("<job>", "id")
  .action((id) => answered("retryJob", { id }));

export const queue = group("queue", "The work of all hosts, for operators", [list, cancel, retry]);
