import { group } from "../../command.ts";
import { activateHost, drainHost } from "./act.ts";
import { createHost } from "./create.ts";
import { listHosts } from "./list.ts";
import { deleteHost } from "./remove.ts";

export const hosts = group("hosts", "Hosts, for operators; everything else with `berth api`", [
  listHosts,
  createHost,
  drainHost,
  activateHost,
  deleteHost,
]);
