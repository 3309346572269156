import { answered } from "../answered.ts";
import { command } from "../command.ts";
import { listed } from "../shown.ts";

export const disk = command(
  "disk",
  "What your sites and databases take of their hosts' disks, largest first",
  "getAccountDisk",
).action(() =>
  answered(
    "getAccountDisk",
    {},
    listed("name", "kind", "countedMb", "limitMb", "logMb", "buildCacheMb", "id"),
  ),
);
