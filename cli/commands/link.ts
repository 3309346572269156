import { command } from "../command.ts";
import { connect } from "../context.ts";
import { usage } from "../failure.ts";
import { checkoutRoot, linkedSite, linkSite, unlinkSite } from "../git.ts";
import { findSite } from "../site.ts";
import { bold, safe, showValue } from "../terminal.ts";

export const linkCommand = command(
  "link",
  "Link this checkout to a site, so that commands need no --site",
  "linked",
)
  .argument("<site>", "name or id")
  .action(async (named) => {
    if ((await checkoutRoot()) === null)
      throw usage("This folder is not a Git checkout.", "Use --site or BERTH_SITE instead.");
    const { id, name } = await findSite(await connect(), named);
    if (!(await linkSite(id)))
      throw usage(
        "Git could not store the site in this checkout.",
        "Check that you may write to .git/config.",
      );
    showValue("linked", { id, name }, () => `This checkout is linked to ${bold(safe(name))}.`);
  });

export const unlinkCommand = command("unlink", "Forget the site of this checkout", "unlinked").action(
  async () => {
    const id = await linkedSite();
    await unlinkSite();
    showValue("unlinked", { id }, () => "This checkout is not linked to a site.");
  },
);
