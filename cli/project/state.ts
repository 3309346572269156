import type { Client, ProjectFile } from "../../client/index.ts";
import { globalOptions, signal } from "../context.ts";
import { usage } from "../failure.ts";
import { linkedSite } from "../git.ts";
import { findProjectFile, projectFileName, readProjectFile } from "../project-file.ts";
import { givenSite } from "../site.ts";
import { safe } from "../terminal.ts";
import { linkInTheWay, planOf, secretsOf, sharedBy, type Actual, type Step } from "./plan.ts";

/** The nearest berth.json. @throws Failure (usage) with each thing that is wrong in it */
async function loadProject(): Promise<{ path: string; file: ProjectFile }> {
  const path = findProjectFile();
  if (path === undefined)
    throw usage(
      `There is no ${projectFileName} here or above, up to the root of the checkout.`,
      "`berth init` writes one.",
    );
  const { ProjectFile: schema } = await import("../../client/schemas.ts");
  const parsed = schema.safeParse(readProjectFile(path));
  if (parsed.success) {
    const shared = sharedBy(parsed.data);
    if (shared === undefined) return { path, file: parsed.data };
    throw usage(
      `${path} has two databases ${safe(shared)}, and a site can have one.`,
      'Give one another name or "variable". Nothing was changed.',
    );
  }
  const issues = parsed.error.issues.map((one) => `${one.path.join(".") || "it"}: ${one.message}`);
  throw usage(`${path} is not valid: ${issues.map(safe).join("; ")}.`, "Nothing was changed.");
}

/** What the account has of what the file is about. */
export async function actualOf(client: Client, name: string): Promise<Actual> {
  const [site, databases] = await Promise.all([
    siteOf(client, name),
    all(client.items("listDatabases", { limit: 100 }, { signal })),
  ]);
  const schedules = site
    ? await all(client.items("listSchedules", { id: site.id, limit: 100 }, { signal }))
    : [];
  return { site, databases, schedules };
}

/** By its name: where another one is given or linked, that is more likely a mistake than a wish. */
async function siteOf(client: Client, name: string): Promise<Actual["site"]> {
  const given = givenSite();
  const linked = given === undefined ? await linkedSite() : null;
  let found: Actual["site"] = null;
  for await (const site of client.items("listSites", { limit: 100 }, { signal }))
    if (site.name === name) found = site;
    else if (site.id === linked)
      throw usage(
        `This checkout is linked to ${safe(site.name)}, and ${projectFileName} is about ${safe(name)}.`,
        "Change `name` in it, or `berth unlink` first.",
      );
  if (given !== undefined && given !== name && given !== found?.id)
    throw usage(
      `${globalOptions().site === undefined ? "BERTH_SITE" : "--site"} is ${safe(given)}, and ${projectFileName} is about ${safe(name)}.`,
      `Leave it out if you mean ${safe(name)}; otherwise change \`name\` in the file.`,
    );
  return found;
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** berth.json against the account. @throws Failure if it holds what is a secret on the site, or another type of a database */
export async function comparison(
  client: Client,
): Promise<{ file: ProjectFile; actual: Actual; steps: Step[] }> {
  const { file } = await loadProject();
  const actual = await actualOf(client, file.name);
  const secrets = secretsOf(file, actual);
  if (secrets.length > 0)
    throw usage(
      `${secrets.map(safe).join(", ")} ${secrets.length === 1 ? "is a secret" : "are secrets"} on the site, which a file must not contain.`,
      `Take ${secrets.length === 1 ? "it" : "them"} out of ${projectFileName}; \`berth env set --secret\` changes a secret.`,
    );
  for (const wanted of file.databases ?? []) {
    const there = actual.databases.find(({ name }) => name === wanted.name);
    if (there !== undefined && there.type !== wanted.type)
      throw usage(
        `${safe(there.name)} is ${there.type}, and ${projectFileName} says ${wanted.type}.`,
        `Write its type into ${projectFileName}, or another name, under which a new one is created. Nothing was changed.`,
      );
  }
  return { file, actual, steps: planOf(file, actual) };
}

/**
 * The service would refuse such a link only after earlier steps are taken; a deployment goes on with the links that there
 * are. @throws Failure (usage) if another link is in the way of one that the file wants
 */
export function requireFreeLinks(file: ProjectFile, actual: Actual): void {
  const link = linkInTheWay(file, actual);
  if (link === undefined) return;
  const { wanted, has } = link;
  throw usage(
    `The site has the database ${safe(has.name)} as ${safe(has.variable)}, and ${projectFileName} wants ${safe(wanted.name)} as ${safe(wanted.variable)}.`,
    `Write ${wanted.name === has.name ? `"variable": "${safe(has.variable)}"` : 'another "variable"'} for ${safe(wanted.name)} in ${projectFileName}. Or \`berth databases unlink ${safe(has.name)}\` first, which removes ${safe(has.variable)} from the site.`,
  );
}
