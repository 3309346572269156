import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { findSite } from "../../site.ts";
import { acted, show } from "../../terminal.ts";

const acting = (action: "start" | "stop" | "restart", summary: string) =>
  command(action, summary, "patchSite")
    .argument("[site]", "name or id")
    .action(async (site) => {
      const client = await connect();
      const { id, name } = await findSite(client, site);
      const answer = await client.call("patchSite", { id, action }, { signal });
      show<"patchSite", { action: string }>("patchSite", answer, ({ status }) => acted(name, status, action));
    });

export const startSite = acting("start", "Start a stopped site");
export const stopSite = acting("stop", "Stop a site; visitors see that it is stopped");
export const restartSite = acting("restart", "Restart a site with its latest variables");
