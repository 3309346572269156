import { command } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { fields, safe, show } from "../../terminal.ts";

export const whoami = command(
  "whoami",
  "Show the account, service and profile that commands use",
  "getAccount",
).action(async () => {
  const client = await connect();
  const { url, profileName } = connection();
  show("getAccount", await client.call("getAccount", {}, { signal }), (account) =>
    fields({
      Account: `${safe(account.name)} <${safe(account.email)}>`,
      Role: account.role,
      Plan: account.plan,
      Unpaid:
        account.payment.unpaid.length === 0 ? null : `${account.payment.unpaid.length} (berth invoices list)`,
      Service: url,
      Profile: profileName,
    }),
  );
});
