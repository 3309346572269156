import { command } from "../command.ts";
import { connect, connection } from "../context.ts";
import { openInBrowser } from "../open.ts";
import { findSite } from "../site.ts";
import { safe, showValue } from "../terminal.ts";

export const open = command("open", "Open a site in the browser", "page")
  .argument("[site]", "name or id")
  .option("--dashboard", "its page in Berth instead")
  .action(async (named, options) => {
    const site = await findSite(await connect(), named);
    const url = options.dashboard ? `${connection().url}/sites/${site.id}` : site.url;
    showValue("page", { url }, () => safe(url));
    await openInBrowser(url);
  });
