import { group } from "../../command.ts";
import { maintenance } from "./maintenance.ts";
import { protect, unprotect } from "./protect.ts";
import { redirect, removeRedirect } from "./redirect.ts";
import { setIngress } from "./set.ts";
import { showIngress } from "./show.ts";

export const ingress = group(
  "ingress",
  "A site's maintenance page, redirects, passwords and other rules; effective immediately",
  [showIngress, setIngress, maintenance, redirect, removeRedirect, protect, unprotect],
);
