import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../../client/index.ts";
import { command } from "../../command.ts";
import { changeConfig, profileOf, readConfig, requireWritable, siteUrlOf } from "../../config.ts";
import {
  addressOf,
  clientFor,
  clientName,
  globalOptions,
  profileNameOf,
  profilesFile,
  signal,
  standardInput,
} from "../../context.ts";
import { exitCodes, Failure, usage } from "../../failure.ts";
import { openInBrowser } from "../../open.ts";
import { bold, dim, link, safe, say, showValue, spin, styled } from "../../terminal.ts";

export const login = command(
  "login",
  "Sign in to a Berth service with your browser, or with --token",
  "signedIn",
)
  .argument("[url]", "the address of the service; default: that of the profile")
  .option("--with-token", "read an API key from standard input")
  .option("--no-browser", "only show the address to open")
  .action(async (typed, options) => {
    const given = globalOptions();
    const config = readConfig(profilesFile());
    const profileName = profileNameOf(given, process.env, config);
    const address =
      typed ?? addressOf(given, process.env, profileOf(config, profileName)) ?? process.env["BERTH_URL"];
    if (!address)
      throw usage("Which service? Give its address.", "For example: berth login https://berth.example");
    const url = siteUrlOf(address);
    requireWritable(profilesFile());
    const patient = patience();
    const byDevice = !options.withToken && given.token === undefined;
    const token = options.withToken
      ? (await standardInput()).trim()
      : (given.token ?? (await fromDevice(url, options.browser, patient)));
    if (token === "") throw usage("Standard input contains no key.");
    const client = await clientFor(url, token);
    let email: string;
    let current = profileName;
    try {
      ({ email } = await accountOf(client, patient));
      await changeConfig(profilesFile(), (latest) => {
        // Who names another profile means this command; the default stays while it has a key.
        if (profileOf(latest, latest.current)?.token !== undefined) ({ current } = latest);
        return { current, profiles: { ...latest.profiles, [profileName]: { url, token, email } } };
      });
    } catch (error) {
      if (byDevice) await revoke(client, url);
      throw error;
    }
    showValue("signedIn", { url, email, profile: profileName }, () =>
      [
        `${styled("green", "✓")} Signed in to ${url} as ${bold(safe(email))}.`,
        ...(byDevice
          ? [dim(`The key is named “${clientName()}”; you can revoke it at ${url}/account/keys.`)]
          : []),
      ].join("\n"),
    );
    if (current !== profileName)
      say(
        dim(
          `Commands still use the profile ${safe(current)}; --profile ${safe(profileName)} or BERTH_PROFILE uses this one.`,
        ),
      );
  });

/** @throws Failure (signed out) if the service does not accept the client's key, which is not the one of this run */
async function accountOf(client: Client, patient: AbortSignal) {
  try {
    return await client.call("getAccount", {}, { signal: patient });
  } catch (error) {
    const { ApiError } = await import("../../../client/index.ts");
    if (!(error instanceof ApiError) || error.code !== "unauthorized") throw error;
    throw new Failure(
      "The service does not accept this key: it was revoked, or belongs to another service.",
      {
        exitCode: exitCodes.signedOut,
        hint: "The profile was not changed. Give another key, or none to sign in with your browser.",
      },
    );
  }
}

/** Ends a key that was made for this computer and cannot be kept: nobody has it then. */
async function revoke(client: Client, url: string): Promise<void> {
  try {
    await client.call("revokeOwnKey", {}, { signal: AbortSignal.timeout(5000) });
  } catch {
    say(`The key named “${clientName()}” may still be valid: revoke it at ${url}/account/keys.`);
  }
}

/** Ends two seconds after Ctrl-C: an answer that is on its way may bring the key, which nobody would have otherwise. */
function patience(): AbortSignal {
  const ending = new AbortController();
  signal.addEventListener("abort", () => setTimeout(() => ending.abort(signal.reason), 2000).unref());
  return ending.signal;
}

/** Device login (RFC 8628): a person approves the code in a browser, and the key arrives here. */
async function fromDevice(url: string, mayOpen: boolean, patient: AbortSignal): Promise<string> {
  const client = await clientFor(url, undefined);
  const codes = await client.call("startDevice", { clientName: clientName() }, { signal });
  say(
    `Open ${link(codes.verification_url)}\nand check that it shows this code:\n\n    ${bold(codes.user_code)}\n`,
  );
  if (mayOpen) await openInBrowser(codes.verification_url);
  const spinner = spin("Waiting until you approve it in the browser …");
  try {
    return await approval(client, codes, patient);
  } finally {
    spinner.stop();
  }
}

async function approval(
  client: Client,
  {
    device_code: code,
    expires_in: lifetimeSeconds,
    interval,
  }: { device_code: string; expires_in: number; interval: number },
  patient: AbortSignal,
): Promise<string> {
  const { ApiError } = await import("../../../client/index.ts");
  // Not the clock of the day, which may be wrong or be set meanwhile.
  const end = performance.now() + lifetimeSeconds * 1000;
  for (;;) {
    await delay(interval * 1000, undefined, { signal });
    try {
      const polled = await client.call("pollDevice", { code }, { signal: patient });
      if (polled.status === "approved") return polled.token;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
      throw new Failure(
        performance.now() < end
          ? "The sign-in was denied in the browser, or its code has expired."
          : "The code has expired.",
        {
          exitCode: exitCodes.signedOut,
          hint: "Run `berth login` again.",
        },
      );
    }
    if (performance.now() > end)
      throw new Failure("Nobody approved the code in time.", {
        exitCode: exitCodes.signedOut,
        hint: "Run `berth login` again.",
      });
  }
}
