import type { Answer, Client } from "../client/index.ts";
import { globalOptions, signal } from "./context.ts";
import { exitCodes, Failure, usage } from "./failure.ts";
import { linkedSite } from "./git.ts";
import { projectName } from "./project-file.ts";

export type Site = Answer<"listSites">["data"][number];
type Named = { id: string; name: string };

/** The site that this run is told to be about: --site, BERTH_SITE. */
export const givenSite = (): string | undefined =>
  globalOptions().site ?? (process.env["BERTH_SITE"] || undefined);

/** What a person named: the argument, --site, BERTH_SITE, the checkout's link. */
export const namedSite = async (argument?: string): Promise<string | undefined> =>
  argument ?? givenSite() ?? (await linkedSite()) ?? undefined;

/** What names the site: a person, or the name in berth.json. */
async function chosenSite(argument?: string): Promise<string> {
  const chosen = (await namedSite(argument)) ?? projectName();
  if (chosen === undefined)
    throw usage(
      "Which site? None is named, and this folder is not linked to one.",
      "Give --site with its name or id, or run `berth link <site>` in the checkout; for a new site run `berth init` there.",
    );
  return chosen;
}

/** The id of the site that is meant. */
export async function siteId(client: Client, argument?: string): Promise<string> {
  const chosen = await chosenSite(argument);
  if (chosen.startsWith("site_")) return chosen;
  return (await byName(client.items("listSites", { limit: 100 }, { signal }), chosen, "site")).id;
}

/** The site that is meant, as lists show it. */
export async function findSite(client: Client, argument?: string): Promise<Site> {
  const chosen = await chosenSite(argument);
  if (chosen.startsWith("site_")) return client.call("getSite", { id: chosen }, { signal });
  return byName(client.items("listSites", { limit: 100 }, { signal }), chosen, "site");
}

export async function databaseId(client: Client, chosen: string): Promise<string> {
  if (chosen.startsWith("db_")) return chosen;
  return (await byName(client.items("listDatabases", { limit: 100 }, { signal }), chosen, "database")).id;
}

export async function hostId(client: Client, chosen: string): Promise<string> {
  if (chosen.startsWith("host_")) return chosen;
  return (await byName(client.items("listHosts", { limit: 100 }, { signal }), chosen, "host")).id;
}

/** The id of the pack that is meant, by its name among those on offer. */
export async function packId(client: Client, kind: "site" | "database", chosen: string): Promise<string> {
  if (chosen.startsWith("pack_")) return chosen;
  const { data } = await client.call("listPacks", { limit: 100 }, { signal });
  const found = data.filter((pack) => pack.kind === kind && pack.name.toLowerCase() === chosen.toLowerCase());
  const [pack] = found;
  if (pack && found.length === 1) return pack.id;
  throw new Failure(
    pack
      ? `Several ${kind} packs are named ${chosen}: give an id.`
      : `There is no ${kind} pack named ${chosen}.`,
    { exitCode: exitCodes.notFound, hint: "`berth packs list` shows them." },
  );
}

async function byName<One extends Named>(
  items: AsyncIterable<One>,
  name: string,
  kind: string,
): Promise<One> {
  for await (const item of items) if (item.name === name) return item;
  throw new Failure(`You have no ${kind} named ${name}.`, {
    exitCode: exitCodes.notFound,
    hint: `\`berth ${kind}s list\` shows them.`,
  });
}
