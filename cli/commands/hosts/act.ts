import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { hostId } from "../../site.ts";
import { safe, show, status } from "../../terminal.ts";

const acting = (action: "drain" | "activate", summary: string) =>
  command(action, summary, "patchHost")
    .argument("<host>", "name or id")
    .action(async (host) => {
      const client = await connect();
      const id = await hostId(client, host);
      show(
        "patchHost",
        await client.call("patchHost", { id, action }, { signal }),
        (one) =>
          `${safe(one.name)} is ${status(one.status)}${one.notice === null ? "." : `: ${safe(one.notice)}`}`,
      );
    });

export const drainHost = acting("drain", "Move a host's sites to other hosts, one by one");
export const activateHost = acting("activate", "Let a host accept sites again");
