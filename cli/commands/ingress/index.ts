import { group } from "../../command.ts";
import { maintenance } from "./maintenance.ts";
import { protect, unprotect } from "./protect.ts";
import { redirect, removeRedirect } from "./redirect.ts";
import { setIngress } from "./set.ts";
import { showIngress } from "./show.ts";

export const ingress = group(
  "ingress",
  "Maintenance page, redirects, passwords and other rules of a site; at once",
  [showIngress, setIngress, maintenance, redirect, removeRedirect, protect, unprotect],
);
