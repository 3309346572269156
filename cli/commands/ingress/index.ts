import { group } from "../../command.ts";
import { maintenance } from "./maintenance.ts";
import { protect, unprotect } from "./protect.ts";
import { redirect, removeRedirect } from "./redirect.ts";
import { showIngress } from "./show.ts";

export const ingress = group("ingress", "Maintenance page, redirects and passwords of a site; at once", [
  showIngress,
  maintenance,
  redirect,
  removeRedirect,
  protect,
  unprotect,
]);
