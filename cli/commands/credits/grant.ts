import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { safe, show } from "../../terminal.ts";

export const grantCredits = command("grant", "Grant credits to an account (operators)", "grantCredits")
  .argument("<email>")
  .argument("<amount>", "credits", whole)
  .action(async (email, amount) => {
    const client = await connect();
    show(
      "grantCredits",
      await client.call("grantCredits", { email, amount }, { signal }),
      (one) => `Granted ${one.amount} credits to ${safe(email)}.`,
    );
  });
