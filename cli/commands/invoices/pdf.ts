import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { saveTo } from "../../download.ts";

export const invoicePdf = command("pdf", "Download an invoice as a PDF", "savedFile")
  .argument("<invoice>", "id")
  .argument("[file]", "where to; - is standard output; default: the id")
  .option("--force", "replace the file")
  .action(async (id, file, { force }) => {
    const client = await connect();
    const { token } = await client.call("getInvoice", { id }, { signal });
    const target = file ?? `${id}.pdf`;
    await saveTo(await client.file({ id: "getInvoicePdf", input: { token } }, { signal }), target, force);
  });
