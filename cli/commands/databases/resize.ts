import { answered, packChanged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { databaseId, packId } from "../../site.ts";

export const resizeDatabase = command("resize", "Change a database's pack", "patchDatabase")
  .argument("<database>", "name or id")
  .argument("<pack>", "name or id: berth packs list")
  .action(async (named, pack) => {
    const client = await connect();
    await answered(
      "patchDatabase",
      { id: await databaseId(client, named), packId: await packId(client, "database", pack) },
      packChanged,
    );
  });
