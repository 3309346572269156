import type { Answer } from "../../../client/index.ts";
import { command, whole } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { safe, showValue, spin } from "../../terminal.ts";
import { setTimeout as delay } from "node:timers/promises";
import { domainText } from "./list.ts";

type Changed = Answer<"patchSite">;
const shown = (answer: Changed): void => {
  if ("record" in answer) showValue(answer, domainText);
  else showValue(answer, () => "Removed.");
};

export const addDomain = command("add", "Add a domain, and show what to set at its DNS", {
  words: "`Domain`",
})
  .argument("<domain>")
  .action(async (domain) => {
    const client = await connect();
    shown(await client.call("patchSite", { id: await siteId(client), domain }, { signal }));
  });

export const removeDomain = command("remove", "Take a domain from a site", { words: "`{domain, removed}`" })
  .argument("<domain>")
  .action(async (domain) => {
    const client = await connect();
    const id = await siteId(client);
    await confirmed(`Take ${safe(domain)} from the site?`);
    shown(await client.call("patchSite", { id, domain: { remove: domain } }, { signal }));
  });

export const verifyDomain = command(
  "verify",
  "Look for the domain's TXT record; with --wait until it is there",
  { words: "`Domain`" },
)
  .argument("<domain>")
  .option("--wait", "look again until it is verified")
  .option("--timeout <seconds>", "how long to wait", whole, 900)
  .action(async (domain, options) => {
    const { ApiError } = await import("../../../client/index.ts");
    const client = await connect();
    const id = await siteId(client);
    const end = performance.now() + options.timeout * 1000;
    const spinner = options.wait ? spin(`Waiting for the TXT record of ${safe(domain)} …`) : undefined;
    try {
      for (;;) {
        try {
          const answer = await client.call("patchSite", { id, domain: { verify: domain } }, { signal });
          spinner?.stop();
          shown(answer);
          return;
        } catch (error) {
          if (
            !options.wait ||
            !(error instanceof ApiError) ||
            error.code !== "conflict" ||
            performance.now() > end
          )
            throw error;
        }
        await delay(10_000, undefined, { signal });
      }
    } finally {
      spinner?.stop();
    }
  });
