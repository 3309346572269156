import { group } from "../../command.ts";
import { diffEnv } from "./diff.ts";
import { generateEnv } from "./generate.ts";
import { envHistory, restoreEnv } from "./history.ts";
import { listEnv } from "./list.ts";
import { pullEnv } from "./pull.ts";
import { pushEnv } from "./push.ts";
import { setEnv } from "./set.ts";
import { unsetEnv } from "./unset.ts";

export const env = group("env", "A site's variables", [
  listEnv,
  setEnv,
  generateEnv,
  unsetEnv,
  pullEnv,
  pushEnv,
  diffEnv,
  envHistory,
  restoreEnv,
]);
