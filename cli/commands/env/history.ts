import { command, whole } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { dim, safe, say, show, table, when } from "../../terminal.ts";

export const envHistory = command(
  "history",
  "Changes to a site's variables: which, when, by whom; never their values",
  "listEnvVersions",
)
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    show(
      "listEnvVersions",
      await client.call("listEnvVersions", { id: await siteId(client, site) }, { signal }),
      ({ data }) =>
        table(
          data,
          {
            version: ({ version, current }) => `${version}${current ? " (current)" : ""}`,
            when: ({ at }) => when(at),
            by: ({ actor }) => actor ?? dim("unknown"),
            changes: ({ changes, restoredFrom }) =>
              (restoredFrom === null ? "" : `back to ${restoredFrom}: `) +
              changes
                .map(({ key, change }) => `${{ added: "+", changed: "~", removed: "-" }[change]}${safe(key)}`)
                .join(" "),
          },
          "No changes yet.",
        ),
    );
  });

export const restoreEnv = command(
  "restore",
  "Bring back the variables of an earlier version, secrets included",
  "restoreEnvVersion",
)
  .argument("<version>", "its number: berth env history", whole)
  .action(async (version) => {
    const client = await connect();
    const answer = await client.call("restoreEnvVersion", { id: await siteId(client), version }, { signal });
    show("restoreEnvVersion", answer, () => `Version ${version} is back.`);
    if (answer.restartRequired)
      say(
        dim(`The running site has the old values: \`${nextCommand("sites restart")}\` applies the new ones.`),
      );
  });
