import { command } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { link, show } from "../../terminal.ts";

export const buyCredits = command("buy", "Create an invoice for a package", "purchaseCredits")
  .argument("<package>", "id: berth credits packages")
  .action(async (packageId) => {
    const client = await connect();
    show(
      "purchaseCredits",
      await client.call("purchaseCredits", { packageId }, { signal }),
      ({ invoiceToken, invoiceId }) =>
        `Pay ${invoiceId}: ${link(`${connection().url}/invoice/${invoiceToken}`)}`,
    );
  });
