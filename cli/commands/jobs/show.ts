import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { fields, safe, show, status, when } from "../../terminal.ts";

export const showJob = command("show", "One job and its result", "getCommand")
  .argument("<job>", "id")
  .action(async (id) => {
    const client = await connect();
    show("getCommand", await client.call("getCommand", { id }, { signal }), (one) =>
      fields({
        Command: safe(one.command),
        Status: status(one.status),
        "Exit code": one.exitCode === null ? null : String(one.exitCode),
        Problem: safe(one.error ?? ""),
        "Waits for": safe(one.waitsFor ?? ""),
        Created: when(one.createdAt),
        Finished: one.finishedAt && when(one.finishedAt),
      }),
    );
  });
