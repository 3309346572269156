import { command, whole } from "../../command.ts";
import { connect } from "../../context.ts";
import { exitCodes, Failure } from "../../failure.ts";
import { findSite } from "../../site.ts";
import { safe } from "../../terminal.ts";
import { changeIngress } from "./change.ts";

export const redirect = command("redirect", "Redirect visitors of a path elsewhere", "getSite")
  .argument("<from>", "a path, such as /old")
  .argument("<to>", "a path, or an address such as https://example.com/new")
  .option("--prefix", "also the paths below it")
  .option("--code <code>", "301, 302, 307 or 308", whole, 308)
  .action(async (from, to, { prefix, code }) => {
    const client = await connect();
    const { id, ingress } = await findSite(client);
    const others = (ingress.redirects ?? []).filter((one) => one.from !== from);
    const added = { from, to, code: code as 308, ...(prefix && { match: "prefix" as const }) };
    await changeIngress(client, id, { redirects: [...others, added] }, `${safe(from)} leads to ${safe(to)}.`);
  });

export const removeRedirect = command("unredirect", "End the redirect of a path", "getSite")
  .argument("<from>")
  .action(async (from) => {
    const client = await connect();
    const { id, ingress } = await findSite(client);
    const others = (ingress.redirects ?? []).filter((one) => one.from !== from);
    if (others.length === (ingress.redirects ?? []).length)
      throw new Failure(`Nothing redirects ${safe(from)}.`, { exitCode: exitCodes.notFound });
    await changeIngress(
      client,
      id,
      { redirects: others.length > 0 ? others : null },
      `${safe(from)} no longer redirects.`,
    );
  });
