import type { Client, Input, ProjectFile } from "../../client/index.ts";
import { connection, signal } from "../context.ts";
import { HalfDone, usage } from "../failure.ts";
import { linkSite, originAddress } from "../git.ts";
import { dim, link, safe, say, styled } from "../terminal.ts";
import { settingsOf, withoutNull, type Actual, type Step } from "./plan.ts";

/** What applying leads to: invoices to pay, in this order. */
type Applied = { siteId: string; invoices: string[] };

/**
 * Takes the steps in their order. Each has its effect once, however often it is taken: a run that was cut off is
 * completed by the next one. @throws HalfDone by what ended it, once a step is done
 */
export async function apply(
  client: Client,
  file: ProjectFile,
  actual: Actual,
  steps: readonly Step[],
): Promise<Applied> {
  let isBegun = false;
  try {
    return await take(client, { file, actual, steps }, (text) => {
      isBegun = true;
      say(`${styled("green", "✓")} ${safe(text)}`);
    });
  } catch (error) {
    if (!isBegun) throw error;
    const rest = "The previous steps are done: fix the cause, and run `berth up` again for the rest.";
    throw new HalfDone(rest, error);
  }
}

type Wanted = { file: ProjectFile; actual: Actual; steps: readonly Step[] };

async function take(client: Client, wanted: Wanted, done: (text: string) => void): Promise<Applied> {
  const { file, actual } = wanted;
  const invoices: string[] = [];
  // Whatever ends the run later, what it has made can be paid.
  const billed = (name: string, token: string) => {
    const url = `${connection().url}/invoice/${token}`;
    invoices.push(url);
    say(`Pay to start ${safe(name)}: ${link(url)}`);
  };
  if (actual.site !== null) {
    await change(client, actual.site.id, wanted, done, billed);
    return { siteId: actual.site.id, invoices };
  }
  const { siteId, invoiceToken } = await client.call("createSite", await creationOf(file), { signal });
  try {
    await linkSite(siteId);
    done(`Created the site ${file.name}.`);
    await change(client, siteId, wanted, done, billed);
    return { siteId, invoices };
  } finally {
    // Last: its payment deploys it, and its databases should be there by then.
    billed(file.name, invoiceToken);
  }
}

/** All steps but the creation of the site. */
async function change(
  client: Client,
  id: string,
  { actual, steps }: Wanted,
  done: (text: string) => void,
  billed: (name: string, token: string) => void,
): Promise<void> {
  const settings = Object.fromEntries(
    steps.flatMap((step) => (step.kind === "setting" ? [[step.name, step.after]] : [])),
  );
  if (Object.keys(settings).length > 0) {
    const { githubUrl, image } = settings as { githubUrl?: string; image?: string };
    if (actual.site?.deployType !== "github" && githubUrl !== undefined)
      throw usage("A site from an image cannot become one from a repository.", "Create another site.");
    if (actual.site?.deployType !== "image" && image !== undefined)
      throw usage("A site from a repository cannot become one from an image.", "Create another site.");
    await client.call("patchSite", { id, settings }, { signal });
    done(`Changed ${Object.keys(settings).join(", ")}.`);
  }
  const variables = steps.flatMap((step): { key: string; value: string | null }[] =>
    step.kind === "variable"
      ? [{ key: step.name, value: step.after }]
      : step.kind === "removeVariable"
        ? [{ key: step.name, value: null }]
        : [],
  );
  for (let at = 0; at < variables.length; at += 200) {
    const some = variables.slice(at, at + 200);
    await client.call("patchSite", { id, envVariables: some }, { signal });
    done(`Changed ${some.map(({ key }) => key).join(", ")}.`);
  }
  const databaseIds = new Map(actual.databases.map((one) => [one.name, one.id]));
  for (const step of steps)
    switch (step.kind) {
      case "createDatabase": {
        const { name, type } = step.database;
        const made = await client.call("createDatabase", { name, type }, { signal });
        databaseIds.set(name, made.databaseId);
        done(`Created the database ${name}.`);
        billed(name, made.invoiceToken);
        break;
      }
      case "linkDatabase": {
        const { variable, database } = step;
        const databaseId = databaseIds.get(database.name) ?? "";
        await client.call("linkDatabase", { id: databaseId, siteId: id, variable }, { signal });
        done(`The site has ${database.name} as ${variable}.`);
        break;
      }
      case "domain":
        await client.call("createDomain", { id, domain: step.name }, { signal });
        done(`Added ${step.name}: \`berth domains list\` shows the DNS records to set.`);
        break;
      case "createSchedule":
        await client.call("createSchedule", { id, ...step.schedule }, { signal });
        done(`Created the schedule ${step.schedule.name}.`);
        break;
      case "changeSchedule":
        await client.call("patchSchedule", { id: step.id, ...step.changes }, { signal });
        done(`Changed the schedule ${step.schedule.name}.`);
        break;
      case "removeDomain":
        await client.call("deleteDomain", { id, name: step.name }, { signal });
        done(`Removed the domain ${step.name}.`);
        break;
      case "removeSchedule":
        await client.call("deleteSchedule", { id: step.id }, { signal });
        done(`Removed the schedule ${step.name}.`);
        break;
      case "createSite":
      case "setting":
      case "variable":
      case "removeVariable":
        break;
      default:
        step satisfies never;
    }
  const deploys = steps.some(({ kind }) =>
    ["setting", "variable", "removeVariable", "linkDatabase"].includes(kind),
  );
  if (deploys && actual.site !== null) say(dim("The changes apply at the next deployment: `berth deploy`."));
}

async function creationOf(file: ProjectFile): Promise<Input<"createSite">> {
  const { name, source } = file;
  const { githubUrl: _, image, ...settings } = settingsOf(file);
  if (typeof image === "string") return { name, deployType: "image", image, ...withoutNull(settings) };
  const githubUrl = source?.repository ?? (await originAddress());
  if (githubUrl === null)
    throw usage(
      "Which repository? berth.json names none, and this folder's Git remote `origin` is missing or not on a server.",
      "Set source.repository or source.image in it.",
    );
  return { name, deployType: "github", githubUrl, ...withoutNull(settings) };
}
