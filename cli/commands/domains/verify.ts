import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { Failure } from "../../failure.ts";
import { siteId } from "../../site.ts";
import { safe, show, spin } from "../../terminal.ts";
import { setTimeout as delay } from "node:timers/promises";
import { domainText } from "./list.ts";

export const verifyDomain = command(
  "verify",
  "Check a domain now; with --wait until visitors reach the site at it",
  "verifyDomain",
)
  .argument("<domain>")
  .option("--wait", "check again until it is active; exits with 1 if it is not in time")
  .option("--timeout <seconds>", "how long to wait", whole, 900)
  .action(async (name, { wait, timeout }) => {
    const client = await connect();
    const id = await siteId(client);
    const end = performance.now() + timeout * 1000;
    const spinner = wait ? spin(`Waiting for ${safe(name)} …`) : undefined;
    try {
      for (;;) {
        const domain = await client.call("verifyDomain", { id, name }, { signal });
        const isOver = !wait || domain.status === "ACTIVE" || performance.now() > end;
        if (isOver) {
          spinner?.stop();
          show("verifyDomain", domain, domainText);
          if (wait && domain.status !== "ACTIVE") throw new Failure(`${safe(name)} is not active yet.`);
          return;
        }
        await delay(10_000, undefined, { signal });
      }
    } finally {
      spinner?.stop();
    }
  });
