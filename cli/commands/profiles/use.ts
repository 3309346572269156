import { command } from "../../command.ts";
import { changeConfig, profileOf, readConfig } from "../../config.ts";
import { profilesFile } from "../../context.ts";
import { usage } from "../../failure.ts";
import { safe, showValue } from "../../terminal.ts";

export const useProfile = command(
  "use",
  "Make a profile the one that commands use without --profile",
  "profileUsed",
)
  .argument("<name>", "the profile's name: `berth profiles list`")
  .action(async (name) => {
    const profile = profileOf(readConfig(profilesFile()), name);
    if (profile === undefined)
      throw usage(
        `There is no profile ${safe(name)}.`,
        `See yours with \`berth profiles list\`, or sign in with \`berth login --profile ${safe(name)}\`.`,
      );
    await changeConfig(profilesFile(), (latest) => ({ ...latest, current: name }));
    const set = process.env["BERTH_PROFILE"] || name;
    showValue("profileUsed", { profile: name, url: profile.url }, () =>
      set === name
        ? `Commands use the profile ${safe(name)} from now on: ${safe(profile.url)}.`
        : `Commands use the profile ${safe(name)} where BERTH_PROFILE is not set. Here it is set, to ${safe(set)}.`,
    );
  });
