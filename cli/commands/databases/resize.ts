import { answered, packChanged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { databaseId } from "../../site.ts";

export const resizeDatabase = command("resize", "Change a database's pack", "patchDatabase")
  .argument("<database>", "name or id")
  .argument("<pack>", "id: berth packs list")
  .action(async (named, packId) =>
    answered("patchDatabase", { id: await databaseId(await connect(), named), packId }, packChanged),
  );
