import { command } from "../../command.ts";
import { readConfig, writeConfig } from "../../config.ts";
import { globalOptions, profilesFile } from "../../context.ts";
import { dim, print, say } from "../../terminal.ts";

export const logout = command("logout", "Forget the key of the profile on this computer").action(() => {
  const config = readConfig(profilesFile());
  const name = globalOptions().profile ?? (process.env["BERTH_PROFILE"] || config.current);
  const profile = config.profiles[name];
  if (profile?.token === undefined) {
    say(`Profile ${name} has no key.`);
    return;
  }
  writeConfig(profilesFile(), { ...config, profiles: { ...config.profiles, [name]: { url: profile.url } } });
  print(`Signed out of ${profile.url}.`);
  say(
    dim(
      `The key is deleted here and still valid: revoke it at ${profile.url}/account if others may have it.`,
    ),
  );
});
