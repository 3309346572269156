import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { show } from "../../terminal.ts";
import { domainText } from "./list.ts";

export const addDomain = command("add", "Add a domain, and show the DNS records to set", "createDomain")
  .argument("<domain>")
  .option("--pair", "also the other of example.com and www.example.com, which redirects to it")
  .option("--redirect-to <domain>", "another domain of the site, to which this one redirects")
  .action(async (domain, { pair, redirectTo }) => {
    const client = await connect();
    const made = await client.call(
      "createDomain",
      { id: await siteId(client), domain, pair, redirectTo },
      { signal },
    );
    show("createDomain", made, domainText);
  });
