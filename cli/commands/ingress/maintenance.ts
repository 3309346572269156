import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { usage } from "../../failure.ts";
import { siteId } from "../../site.ts";
import { changeIngress } from "./change.ts";

export const maintenance = command(
  "maintenance",
  "Show visitors a page (503) while the site keeps running, or end that",
  "getSite",
)
  .argument("<on|off>")
  .option("--message <text>", "on that page")
  .action(async (word, { message }) => {
    if (word !== "on" && word !== "off") throw usage(`Say on or off, not ${word}.`);
    const client = await connect();
    const id = await siteId(client);
    if (word === "on")
      await changeIngress(client, id, { maintenance: { message } }, "Visitors see the page.");
    else await changeIngress(client, id, { maintenance: null }, "Visitors reach the site.");
  });
