import { Command } from "@commander-js/extra-typings";
import { login } from "./commands/account/login.ts";
import { logout } from "./commands/account/logout.ts";
import { whoami } from "./commands/account/whoami.ts";
import { accounts } from "./commands/accounts/index.ts";
import { activity } from "./commands/activity.ts";
import { backups } from "./commands/backups/index.ts";
import { billing } from "./commands/billing/index.ts";
import { chat } from "./commands/chat.ts";
import { completion } from "./commands/completion.ts";
import { conversations } from "./commands/conversations/index.ts";
import { credits } from "./commands/credits/index.ts";
import { databases } from "./commands/databases/index.ts";
import { disk } from "./commands/disk.ts";
import { doctor } from "./commands/doctor.ts";
import { domains } from "./commands/domains/index.ts";
import { env } from "./commands/env/index.ts";
import { events } from "./commands/events.ts";
import { exec } from "./commands/exec.ts";
import { hosts } from "./commands/hosts/index.ts";
import { ingress } from "./commands/ingress/index.ts";
import { init } from "./commands/init.ts";
import { diff, up } from "./commands/up.ts";
import { invoices } from "./commands/invoices/index.ts";
import { jobs } from "./commands/jobs/index.ts";
import { keys } from "./commands/keys.ts";
import { metrics } from "./commands/metrics.ts";
import { notifications } from "./commands/notifications/index.ts";
import { open } from "./commands/open.ts";
import { operator } from "./commands/operator/index.ts";
import { packs } from "./commands/packs/index.ts";
import { profiles } from "./commands/profiles/index.ts";
import { queue } from "./commands/queue/index.ts";
import { schedules } from "./commands/schedules/index.ts";
import { search } from "./commands/search.ts";
import { settings } from "./commands/settings/index.ts";
import { terminal } from "./commands/terminal.ts";
import { traffic } from "./commands/traffic.ts";
import { unhealthy } from "./commands/unhealthy.ts";
import { upgrade } from "./commands/upgrade.ts";
import { volumes } from "./commands/volumes/index.ts";
import { watch } from "./commands/watch.ts";
import { webhook } from "./commands/webhook/index.ts";
import { linkCommand, unlinkCommand } from "./commands/link.ts";
import { api } from "./commands/api.ts";
import { deploy } from "./commands/deploy.ts";
import { deployments } from "./commands/deployments/index.ts";
import { logs } from "./commands/logs.ts";
import { requests } from "./commands/requests.ts";
import { rollback } from "./commands/rollback.ts";
import { sites } from "./commands/sites/index.ts";
import { printedBy } from "./command.ts";
import { setGlobalOptions } from "./context.ts";
import { usage } from "./failure.ts";
import { prepareOutput, styled } from "./terminal.ts";
import { version } from "./version.ts";

/** All commands, by the heading that help and the reference put them under. */
const headings: Record<string, { name(): string }[]> = {
  "Account:": [
    login,
    logout,
    whoami,
    profiles,
    keys,
    notifications,
    activity,
    search,
    unhealthy,
    disk,
    watch,
  ],
  "Sites:": [
    sites,
    init,
    diff,
    up,
    deploy,
    deployments,
    rollback,
    logs,
    requests,
    traffic,
    metrics,
    events,
    open,
    linkCommand,
    unlinkCommand,
  ],
  "For a site:": [env, domains, ingress, terminal, exec, jobs, schedules, volumes, webhook],
  "Databases:": [databases, backups],
  "Billing:": [packs, invoices, billing, credits],
  "Assistant:": [chat, conversations],
  "For operators:": [operator, hosts, queue, accounts, settings],
  "Other:": [api, doctor, completion, upgrade],
};

export type AnyCommand = Command<unknown[], Record<string, unknown>>;

/** The whole command line. */
export function createProgram(): AnyCommand {
  const program = new Command("berth")
    .description("Deploy and run sites and databases on a Berth service.")
    .version(version, "-V, --version", "print the version")
    .option("--json", "print JSON instead of text")
    .option("-q, --quiet", "print results only, no progress")
    .option("--no-color", "no colours; also NO_COLOR")
    .option("-y, --yes", "do not ask before actions that cannot be undone")
    .option(
      "-s, --site <site>",
      "name or id of the site; also BERTH_SITE; default: the site linked to this checkout",
    )
    .option("--profile <name>", "the service and account to use; also BERTH_PROFILE")
    .option("--url <address>", "the address of the service; also BERTH_URL")
    .option("--token <key>", "an API key; prefer BERTH_TOKEN, which process lists do not show")
    .hook("preAction", (self, acting) => {
      const options = self.opts();
      setGlobalOptions(options);
      prepareOutput(options);
      if (options.json && printedBy(acting) === null)
        throw usage("This command gives the terminal to another program, which prints no JSON.");
    });
  for (const [heading, commands] of Object.entries(headings)) {
    program.commandsGroup(heading);
    for (const one of commands) program.addCommand(one as Command);
  }
  program.commandsGroup("Help:");
  for (const one of everyCommand(program)) prepare(one);
  return program;
}

/** A command and all below it. */
export const everyCommand = (of: AnyCommand): AnyCommand[] => [
  of,
  ...(of.commands as unknown as AnyCommand[]).flatMap(everyCommand),
];

function prepare(one: AnyCommand): void {
  one
    .exitOverride()
    .showSuggestionAfterError(true)
    .helpCommand(false)
    .helpOption("-h, --help", "show help")
    .configureOutput({
      outputError: () => undefined,
      // With --json, standard error has an object and nothing else.
      writeErr: (text) => void (process.argv.includes("--json") || process.stderr.write(text)),
    })
    .configureHelp({
      showGlobalOptions: false,
      styleTitle: (text) => styled("bold", text),
      styleCommandText: (text) => text,
      // What each takes, its own help says.
      subcommandTerm: (command) => [command.name(), ...command.aliases()].join("|"),
      sortSubcommands: false,
      // Beside the widest names 34 of 80 columns are left.
      minWidthToWrap: 20,
    });
  const prints = printedBy(one);
  const global =
    one.parent === null
      ? ""
      : "\nEvery command also takes --json, --quiet, --site, --profile, --url and --yes:\nsee berth --help.";
  const answer =
    typeof prints === "string"
      ? "\nWith --json: an object with the fields that the manual (man berth) names."
      : "";
  one.addHelpText("after", answer + global);
}
