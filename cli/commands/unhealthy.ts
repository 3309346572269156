import { answered } from "../answered.ts";
import { command } from "../command.ts";
import { listed } from "../shown.ts";

export const unhealthy = command(
  "unhealthy",
  "Your unhealthy sites and databases, and why",
  "listUnhealthy",
).action(() => answered("listUnhealthy", {}, listed("name", "kind", "status", "reason", "error", "id")));
