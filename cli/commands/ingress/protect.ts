import { command } from "../../command.ts";
import { connect, standardInput } from "../../context.ts";
import { siteId } from "../../site.ts";
import { changeIngress } from "./change.ts";

export const protect = command(
  "protect",
  "Ask visitors for a name and a password; the password is read from standard input",
  "getSite",
)
  .argument("<username>")
  .action(async (username) => {
    const password = (await standardInput()).replace(/\r?\n$/, "");
    const client = await connect();
    const id = await siteId(client);
    await changeIngress(client, id, { basicAuth: { username, password } }, "Visitors are asked for it.");
  });

export const unprotect = command("unprotect", "Let visitors in without a password", "getSite").action(
  async () => {
    const client = await connect();
    await changeIngress(client, await siteId(client), { basicAuth: null }, "Visitors need no password.");
  },
);
