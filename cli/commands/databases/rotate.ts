import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { show } from "../../terminal.ts";

export const rotate = command(
  "rotate",
  "Create a new user and password; linked sites switch one by one",
  "rotateDatabase",
)
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "rotateDatabase",
      await client.call("rotateDatabase", { id: await databaseId(client, named) }, { signal }),
      () => "The password is being rotated.",
    );
  });
