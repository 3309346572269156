import { group } from "../../command.ts";
import { activateHost, drainHost } from "./act.ts";
import { createHost } from "./create.ts";
import { listHosts } from "./list.ts";
import { deleteHost } from "./remove.ts";
import { hostUsage } from "./usage.ts";
import { listSetAside, removeSetAside, setHost } from "./set-aside.ts";

export const hosts = group("hosts", "Hosts, for operators", [
  listHosts,
  hostUsage,
  createHost,
  setHost,
  drainHost,
  activateHost,
  deleteHost,
  listSetAside,
  removeSetAside,
]);
