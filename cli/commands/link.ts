import { command } from "../command.ts";
import { connect } from "../context.ts";
import { usage } from "../failure.ts";
import { checkoutRoot, linkSite, unlinkSite } from "../git.ts";
import { findSite } from "../site.ts";
import { bold, print, safe, showValue } from "../terminal.ts";

export const linkCommand = command("link", "Link this checkout to a site, so that commands need no --site", {
  words: "`{id, name}`",
})
  .argument("<site>", "name or id")
  .action(async (named) => {
    if ((await checkoutRoot()) === null)
      throw usage("This folder is not a Git checkout.", "Use --site or BERTH_SITE instead.");
    const { id, name } = await findSite(await connect(), named);
    if (!(await linkSite(id)))
      throw usage(
        "Git could not note the site in this checkout.",
        "Check that you may write to .git/config.",
      );
    showValue({ id, name }, () => `This checkout is linked to ${bold(safe(name))}.`);
  });

export const unlinkCommand = command("unlink", "Forget the site of this checkout").action(async () => {
  await unlinkSite();
  print("This checkout is linked to no site.");
});
