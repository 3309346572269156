import { answered, paged } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { confirmed } from "../../context.ts";
import { fieldsFrom } from "../../pairs.ts";
import { listed } from "../../shown.ts";
import { safe } from "../../terminal.ts";

const list = paged(command("list", "All accounts, newest first", "listAccounts"))
  .option("--search <text>", "only those whose id, name or address contains this text")
  .option("--email <address>", "only the account with this address")
  .option("--suspended", "only suspended ones")
  .action(({ limit, cursor, search, email, suspended }) =>
    answered(
      "listAccounts",
      { limit, cursor, search, email, ...(suspended && { suspended: "1" as const }) },
      listed("email", "name", "role", "plan", "suspended", "createdAt", "id"),
    ),
  );

const showAccount = command("show", "What an account has, paid and owes", "getAccountForOperator")
  .argument("<account>", "id")
  .action((id) => answered("getAccountForOperator", { id }));

const set = command("set", "Change an account's role, plan or operators' note", "patchAccount")
  .argument("<account>", "id")
  .argument("<field=value...>", "role=user|operator, plan=free|pro, note=null")
  .action((id, pairs) => answered("patchAccount", { ...fieldsFrom(pairs), id }));

const suspend = command(
  "suspend",
  "Stop everything an account runs and refuse its keys; its data is kept",
  "suspendAccount",
)
  .argument("<account>", "id")
  .requiredOption("--reason <text>", "shown and mailed to the owner")
  .action(async (id, { reason }) => {
    await confirmed(`Suspend ${safe(id)}?`);
    await answered("suspendAccount", { id, reason });
  });

const resize = command(
  "resize",
  "Change the plan of anybody's site or database, as its owner would: berth packs",
  "patchTerm",
)
  .argument("<site or database>", "id")
  .argument("<pack>", "id")
  .action((id, packId) => answered("patchTerm", { id, packId }));

const release = command("release", "End a suspension; what is paid for starts again", "releaseAccount")
  .argument("<account>", "id")
  .action((id) => answered("releaseAccount", { id }));

const disableTwoFactor = command(
  "disable-two-factor",
  "Turn off two-step sign-in for an owner who lost the app and the recovery codes; ends all sessions",
  "disableTwoFactor",
)
  .argument("<account>", "id")
  .action(async (id) => {
    await confirmed(`Turn off two-step sign-in for ${safe(id)}?`);
    await answered("disableTwoFactor", { id });
  });

export const accounts = group("accounts", "Accounts, for operators", [
  list,
  showAccount,
  set,
  resize,
  suspend,
  release,
  disableTwoFactor,
]);
