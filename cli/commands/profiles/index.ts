import { group } from "../../command.ts";
import { listProfiles } from "./list.ts";
import { useProfile } from "./use.ts";

export const profiles = group("profiles", "The services and accounts you have signed in to", [
  listProfiles,
  useProfile,
]);
