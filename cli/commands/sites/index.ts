import { group } from "../../command.ts";
import { restartSite, startSite, stopSite } from "./act.ts";
import { createSite } from "./create.ts";
import { listSites } from "./list.ts";
import { deleteSite } from "./remove.ts";
import { showSite } from "./show.ts";

export const sites = group("sites", "Create, see and control sites", [
  listSites,
  showSite,
  createSite,
  startSite,
  stopSite,
  restartSite,
  deleteSite,
]);
