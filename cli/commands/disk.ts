import { answered } from "../answered.ts";
import { command } from "../command.ts";
import { listed } from "../shown.ts";

export const disk = command(
  "disk",
  "Disk usage of your sites and databases on their hosts, largest first",
  "getAccountDisk",
).action(() =>
  answered(
    "getAccountDisk",
    {},
    listed("name", "kind", "countedMb", "limitMb", "logMb", "buildCacheMb", "id"),
  ),
);
