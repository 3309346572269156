import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { databaseId } from "../../site.ts";

export const databaseDisk = command("disk", "A database's disk usage on its host", "getDatabaseDisk")
  .argument("<database>", "name or id")
  .action(async (named) => answered("getDatabaseDisk", { id: await databaseId(await connect(), named) }));
