import { command } from "../command.ts";
import { confirmed, connect } from "../context.ts";
import { isRemoval } from "../project/plan.ts";
import { apply } from "../project/apply.ts";
import { comparison, requireFreeLinks } from "../project/state.ts";
import { planText } from "../project/text.ts";
import { output, print, say, showValue } from "../terminal.ts";

export const diff = command(
  "diff",
  "How the site differs from berth.json; exits with 1 if it does",
  "difference",
).action(async () => {
  const { file, actual, steps } = await comparison(await connect());
  requireFreeLinks(file, actual);
  const changes = steps.filter((step) => !isRemoval(step));
  showValue("difference", { changes, kept: steps.filter(isRemoval) }, () =>
    steps.length === 0 ? "No difference." : planText(steps, false),
  );
  if (changes.length > 0) process.exitCode = 1;
});

export const up = command("up", "Make the site match berth.json; shows the changes first", "applied")
  .option(
    "--prune",
    "also remove variables, domains and schedules that the file's lists do not have; asks first",
  )
  .action(async ({ prune }) => {
    const client = await connect();
    const { file, actual, steps } = await comparison(client);
    requireFreeLinks(file, actual);
    const taken = steps.filter((step) => prune === true || !isRemoval(step));
    if (!output.json && steps.length > 0) say(planText(steps, prune === true));
    if (taken.length === 0) {
      showValue(
        "applied",
        { siteId: actual.site?.id ?? "", changes: [], invoices: [] },
        () => "No difference.",
      );
      return;
    }
    if (taken.some(isRemoval)) await confirmed("Remove everything marked - above?");
    const { siteId, invoices } = await apply(client, file, actual, taken);
    if (output.json) showValue("applied", { siteId, changes: taken, invoices }, () => "");
    else print(siteId);
  });
