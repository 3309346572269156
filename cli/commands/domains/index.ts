import { group } from "../../command.ts";
import { addDomain, removeDomain, verifyDomain } from "./change.ts";
import { listDomains } from "./list.ts";

export const domains = group("domains", "Own domains of a site", [
  listDomains,
  addDomain,
  verifyDomain,
  removeDomain,
]);
