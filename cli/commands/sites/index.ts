import { group } from "../../command.ts";
import { restartSite, startSite, stopSite } from "./act.ts";
import { cloneSite, resizeSite, setSite } from "./change.ts";
import { createSite } from "./create.ts";
import { listSites } from "./list.ts";
import { diagnoseSite, probeSite, siteDisk, siteHealth } from "./look.ts";
import { deleteSite } from "./remove.ts";
import { showSite } from "./show.ts";

export const sites = group("sites", "Create, see and control sites", [
  listSites,
  showSite,
  createSite,
  cloneSite,
  setSite,
  resizeSite,
  startSite,
  stopSite,
  restartSite,
  diagnoseSite,
  siteHealth,
  probeSite,
  siteDisk,
  deleteSite,
]);
