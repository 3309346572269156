import { command } from "../../command.ts";
import { changeConfig, profileOf, readConfig, siteUrlOf, type Profile } from "../../config.ts";
import { clientFor, globalOptions, profileNameOf, profilesFile, signal } from "../../context.ts";
import { exitCodes } from "../../failure.ts";
import { safe, say, showValue, styled } from "../../terminal.ts";

export const logout = command(
  "logout",
  "Revoke the profile's key at the service, and forget it here",
  "signedOut",
)
  .option("--keep-key", "only forget it here: something else uses it as well")
  .action(async ({ keepKey }) => {
    const config = readConfig(profilesFile());
    const name = profileNameOf(globalOptions(), process.env, config);
    const profile = profileOf(config, name);
    if (profile?.token === undefined) {
      showValue(
        "signedOut",
        { url: profile?.url ?? null, profile: name, revoked: false },
        () => `Profile ${safe(name)} has no key.`,
      );
      return;
    }
    const { url, token } = profile;
    const problem = keepKey ? null : await revoke(url, token);
    let next: [string, Profile] | undefined;
    await changeConfig(profilesFile(), ({ profiles, current }) => {
      if (name === current)
        next = Object.entries(profiles).find(([one, each]) => one !== name && each.token !== undefined);
      return { current: next?.[0] ?? current, profiles: { ...profiles, [name]: { url } } };
    });
    showValue(
      "signedOut",
      { url, profile: name, revoked: !keepKey && problem === null },
      () => `Signed out of ${url}.`,
    );
    if (next !== undefined)
      say(`Commands use the profile ${safe(next[0])} from now on: ${safe(next[1].url)}.`);
    if (problem === null) return;
    say(
      `${styled("yellow", "The key is forgotten here, but the service still accepts it:")} ${safe(problem)}\nRevoke it at ${url}/account/keys.`,
    );
    process.exitCode = exitCodes.failure;
  });

/** Why the key still works; null: it does not. */
async function revoke(url: string, token: string): Promise<string | null> {
  const { ApiError } = await import("../../../client/index.ts");
  try {
    await (await clientFor(siteUrlOf(url), token)).call("revokeOwnKey", {}, { signal });
    return null;
  } catch (error) {
    // It was revoked before, such as by a first attempt whose answer was lost.
    if (error instanceof ApiError && error.code === "unauthorized") return null;
    return error instanceof Error ? error.message : String(error);
  }
}
