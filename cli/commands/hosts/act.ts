import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { safe, show, status } from "../../terminal.ts";

const acting = (action: "drain" | "activate", summary: string) =>
  command(action, summary, "patchHost")
    .argument("<host>", "id")
    .action(async (id) => {
      const client = await connect();
      show(
        "patchHost",
        await client.call("patchHost", { id, action }, { signal }),
        (one) =>
          `${safe(one.name)} is ${status(one.status)}${one.notice === null ? "" : `: ${safe(one.notice)}`}.`,
      );
    });

export const drainHost = acting("drain", "Move a host's sites to other hosts, one by one");
export const activateHost = acting("activate", "Let a host accept sites again");
