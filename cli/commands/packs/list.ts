import { command } from "../../command.ts";
import { clientFor, connection, signal } from "../../context.ts";
import { bold, dim, money, safe, show, size, table } from "../../terminal.ts";

export const listPacks = command("list", "Packs on offer, cheapest first", "listPacks").action(async () => {
  const { url, token } = connection();
  const client = await clientFor(url, token);
  show("listPacks", await client.call("listPacks", { limit: 100 }, { signal }), ({ data }) =>
    table(
      data,
      {
        for: ({ kind }) => kind,
        name: ({ name }) => bold(safe(name)),
        "per month": ({ amountCents, currency }) => money(amountCents, currency),
        memory: ({ memoryMb }) => size(memoryMb),
        cpu: ({ cpuMilli }) => String(cpuMilli / 1000),
        disk: ({ diskGb }) => `${diskGb} GB`,
        id: ({ id }) => dim(id),
      },
      "No packs are on offer.",
    ),
  );
});
