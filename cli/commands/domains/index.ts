import { group } from "../../command.ts";
import { addDomain } from "./add.ts";
import { listDomains } from "./list.ts";
import { removeDomain } from "./remove.ts";
import { renewDomain } from "./renew.ts";
import { verifyDomain } from "./verify.ts";

export const domains = group("domains", "A site's custom domains", [
  listDomains,
  addDomain,
  verifyDomain,
  renewDomain,
  removeDomain,
]);
