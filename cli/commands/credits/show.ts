import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { bold, show, styled, table, when } from "../../terminal.ts";

export const showCredits = command("show", "The balance and the latest transactions", "getCredits").action(
  async () => {
    const client = await connect();
    show("getCredits", await client.call("getCredits", {}, { signal }), ({ balance, transactions }) =>
      [
        `${bold(String(balance))} credits`,
        table(
          transactions,
          {
            when: ({ createdAt }) => when(createdAt),
            what: ({ type }) => type,
            amount: ({ amount }) => (amount > 0 ? styled("green", `+${amount}`) : String(amount)),
          },
          "No transactions.",
        ),
      ].join("\n"),
    );
  },
);
