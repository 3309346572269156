import { answered } from "../answered.ts";
import { command } from "../command.ts";
import { listed } from "../shown.ts";

export const search = command("search", "Find sites, databases, domains, deployments and invoices", "search")
  .argument("<text...>", "part of a name, the beginning of a commit, #7, an id")
  .action((words) =>
    answered("search", { q: words.join(" ") }, listed("type", "title", "status", "detail", "id")),
  );
