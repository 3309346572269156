import { group } from "../../command.ts";
import { buyCredits } from "./buy.ts";
import { grantCredits } from "./grant.ts";
import { allPackages, createPackage, setPackage } from "./offer.ts";
import { creditPackages } from "./packages.ts";
import { showCredits } from "./show.ts";

export const credits = group("credits", "What the assistant is paid with", [
  showCredits,
  creditPackages,
  buyCredits,
  grantCredits,
  allPackages,
  createPackage,
  setPackage,
]);
