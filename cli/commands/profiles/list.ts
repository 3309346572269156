import { command } from "../../command.ts";
import { readConfig } from "../../config.ts";
import { globalOptions, profileNameOf, profilesFile } from "../../context.ts";
import { listed } from "../../shown.ts";
import { showValue } from "../../terminal.ts";

export const listProfiles = command("list", "Your profiles, and which one commands use", "profiles").action(
  () => {
    const config = readConfig(profilesFile());
    const used = profileNameOf(globalOptions(), process.env, config);
    const data = Object.entries(config.profiles).map(([name, { url, email, token }]) => ({
      name,
      url,
      email: email ?? null,
      signedIn: token !== undefined,
      used: name === used,
    }));
    showValue("profiles", { data }, listed("name", "url", "email", "signedIn", "used"));
  },
);
