import { command } from "../../command.ts";
import { clientFor, connection, signal } from "../../context.ts";
import { bold, dim, money, safe, show, table } from "../../terminal.ts";

export const creditPackages = command("packages", "What can be bought", "listCreditPackages").action(
  async () => {
    const { url, token } = connection();
    const client = await clientFor(url, token);
    show("listCreditPackages", await client.call("listCreditPackages", {}, { signal }), ({ data }) =>
      table(
        data,
        {
          name: ({ name }) => bold(safe(name)),
          credits: ({ credits }) => String(credits),
          price: ({ amountCents, currency }) => money(amountCents, currency),
          id: ({ id }) => dim(id),
        },
        "No packages are on offer.",
      ),
    );
  },
);
