import { homedir, hostname } from "node:os";
import type { Interface } from "node:readline/promises";
import type { Client } from "../client/index.ts";
import { configFile, profileOf, readConfig, siteUrlOf, type Config, type Profile } from "./config.ts";
import { exitCodes, Failure, usage } from "./failure.ts";
import { dim, quoted, say } from "./terminal.ts";
import { textOf } from "./utf8.ts";
import { version } from "./version.ts";

/** The options that every command takes. */
type GlobalOptions = {
  json?: true;
  quiet?: true;
  color: boolean;
  yes?: true;
  site?: string;
  profile?: string;
  url?: string;
  token?: string;
};

let given: GlobalOptions = { color: true };
export const setGlobalOptions = (options: GlobalOptions): void => void (given = options);
export const globalOptions = (): GlobalOptions => given;

/**
 * A command to copy that acts on what this run acts on: without the options that named the site and the service, it would act on
 * the checkout's. `named`: the site that the command's own argument named; null: the line is about no site, or names all by itself.
 */
export const nextCommand = (line: string, named: string | null | undefined = given.site): string =>
  [
    `berth ${line}`,
    ...(named === undefined || named === null ? [] : [`--site ${quoted(named)}`]),
    ...(given.profile === undefined ? [] : [`--profile ${quoted(given.profile)}`]),
  ].join(" ");

const interruption = new AbortController();
/** Ends when the person presses Ctrl-C. */
export const { signal } = interruption;
export const interrupt = (reason: Error): void => interruption.abort(reason);

export const profilesFile = (): string =>
  configFile({ platform: process.platform, env: process.env, home: homedir() });

type Connection = {
  profileName: string;
  url: string;
  token: string | undefined;
  /** Where the key is from. */
  source: "--token" | "BERTH_TOKEN" | "profile";
};

export const profileNameOf = (options: GlobalOptions, env: NodeJS.ProcessEnv, config: Config): string =>
  options.profile ?? (env["BERTH_PROFILE"] || config.current);

/** The address that was typed. A profile that an option names comes before the variables, as every option does. */
export const addressOf = (
  options: GlobalOptions,
  env: NodeJS.ProcessEnv,
  profile: Profile | undefined,
): string | undefined =>
  options.url ?? (options.profile === undefined ? env["BERTH_URL"] || profile?.url : profile?.url);

/** The service and the key that this run uses: options before variables before the default profile. */
export function connectionOf(options: GlobalOptions, env: NodeJS.ProcessEnv, config: Config): Connection {
  const profileName = profileNameOf(options, env, config);
  const profile = profileOf(config, profileName);
  const typed = addressOf(options, env, profile);
  if (typed === undefined)
    throw new Failure(
      options.profile === undefined
        ? "You are not signed in to a Berth service."
        : `There is no profile ${options.profile}.`,
      { exitCode: exitCodes.signedOut, hint: "Sign in with `berth login https://your-service.example`." },
    );
  const url = siteUrlOf(typed);
  // The key of one service is never sent to another.
  const kept = profile?.url === url ? profile.token : undefined;
  if (options.token !== undefined) return { profileName, url, token: options.token, source: "--token" };
  const set = options.profile === undefined ? env["BERTH_TOKEN"] : undefined;
  return set
    ? { profileName, url, token: set, source: "BERTH_TOKEN" }
    : { profileName, url, token: kept, source: "profile" };
}

export const connection = (): Connection => connectionOf(given, process.env, readConfig(profilesFile()));

export const userAgent = `berth-cli/${version} (${process.platform})`;
export const clientName = (): string =>
  `CLI on ${
    hostname()
      .replaceAll(/[^\x20-\x7e]/g, "")
      .slice(0, 80) || "a computer"
  }`;

/** A client for the service. Loaded on first use: `--help` and `--version` need none of it. */
export async function clientFor(url: string, token: string | undefined): Promise<Client> {
  const { createClient } = await import("../client/index.ts");
  return createClient({
    siteUrl: url,
    userAgent,
    ...(token !== undefined && { token }),
    onWait: (reason, waitMs) => {
      if (waitMs > 1500)
        say(
          dim(
            `${reason === "rate_limited" ? "The service asks to wait" : "No connection; trying again in"} ${Math.ceil(waitMs / 1000)} s …`,
          ),
        );
    },
    onAbandoned: () => say("\nInterrupted before the service answered: the request may have taken effect."),
  });
}

/** The client of the signed-in account. @throws Failure if there is no key */
export async function connect(): Promise<Client> {
  const { url, token } = connection();
  if (token === undefined)
    throw new Failure(`You are not signed in to ${url}.`, {
      exitCode: exitCodes.signedOut,
      hint:
        given.profile === undefined
          ? "Run `berth login`, or set BERTH_TOKEN to an API key."
          : `Run \`berth login --profile ${given.profile}\`. BERTH_TOKEN is not used with --profile.`,
    });
  return clientFor(url, token);
}

/** Asks before something that harms if it is not meant. @throws Failure without a terminal and without --yes */
export async function confirmed(question: string): Promise<void> {
  if (given.yes) return;
  const { output } = await import("./terminal.ts");
  if (!output.isInteractive)
    throw usage(
      "This needs a confirmation, and there is no terminal to ask in.",
      "Add --yes if you mean it.",
    );
  const answer = await ask(`${question} Type yes to continue: `);
  if (answer.trim().toLowerCase() !== "yes")
    throw new Failure("Nothing was changed.", { exitCode: exitCodes.refused });
}

/** Ctrl-C ends the command: readline takes it while it reads from a terminal, which sends no signal then. */
export const interruptible = (lines: Interface): Interface =>
  lines.on("SIGINT", () => process.emit("SIGINT"));

/** One line from the person at the terminal. */
export async function ask(question: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const lines = interruptible(createInterface({ input: process.stdin, output: process.stderr }));
  try {
    return await lines.question(question, { signal });
  } finally {
    lines.close();
  }
}

/** All of standard input, as text. @throws Failure (usage) if it is not UTF-8 */
export async function standardInput(): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return textOf(Buffer.concat(parts), "Standard input");
}
