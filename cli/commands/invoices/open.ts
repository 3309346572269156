import { command } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { openInBrowser } from "../../open.ts";
import { link, showValue } from "../../terminal.ts";

export const openInvoice = command("open", "Open an invoice in the browser, to pay it", "page")
  .argument("<invoice>", "id")
  .action(async (id) => {
    const client = await connect();
    const { token } = await client.call("getInvoice", { id }, { signal });
    const url = `${connection().url}/invoice/${token}`;
    showValue("page", { url }, () => link(url));
    await openInBrowser(url);
  });
