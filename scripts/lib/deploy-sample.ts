import { setTimeout as delay } from "node:timers/promises";
import { call, request, until } from "./client.ts";
import type { State } from "./state.ts";

export type Sample = { id: string; url: string };
type Site = Sample & { status: string; latestDeployment: { id: string; error: string | null } | null };
type Options = {
  state: State;
  save: (change: Partial<State>) => void;
  siteUrl: string;
  baseUrl: string;
  apiKey: string;
};

/**
 * The first start fails without its sample site. At a later one customers' sites are there, and whatever became of the sample and its
 * key must not keep them from running: it is undefined then, and the reason is printed.
 */
export async function deploySample(options: Options): Promise<Sample | undefined> {
  const isFirst = options.state.sampleSiteId === undefined;
  return deploy(options).catch((error: unknown) => {
    if (isFirst) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    console.error(
      `  Berth runs, but its sample site was not found running: ${reason}\n  Mend or delete the site in the dashboard, or leave it alone with --no-sample.`,
    );
    return undefined;
  });
}

/**
 * The main workflow through the public API: create → pay → build → RUNNING. Each step is saved, so that it can be
 * resumed.
 */
async function deploy({ state, save, siteUrl, baseUrl, apiKey }: Options): Promise<Sample> {
  const read = (id: string, expected = [200]) =>
    call<Site>("GET", `${baseUrl}/sites/${id}`, apiKey, undefined, expected);

  let known: Site | undefined;
  if (state.sampleSiteId !== undefined) {
    const answer = await read(state.sampleSiteId, [200, 404]);
    if (answer.status === 200) known = answer.body;
  }
  if (!known) {
    const { body } = await call<{ siteId: string; invoiceToken: string }>(
      "POST",
      `${baseUrl}/sites`,
      apiKey,
      {
        name: `sample-${Date.now().toString(36)}`,
        deployType: "github",
        githubUrl: `127.0.0.1:${state.ports.git}/examples/notes-app.git`,
        port: 3000,
        billingTerm: 1,
      },
    );
    save({ sampleSiteId: body.siteId, sampleInvoiceToken: body.invoiceToken });
    known = (await read(body.siteId)).body;
  }
  const { id } = known;
  if (known.status === "PENDING")
    await call("POST", `${siteUrl}/invoice/${state.sampleInvoiceToken ?? ""}/pay`, apiKey);
  else if (known.status === "FAILED")
    await call("PATCH", `${baseUrl}/sites/${id}`, apiKey, { action: "deploy" });
  // Its owner has stopped or deleted it: there is nothing to wait for.
  else if (known.status !== "RUNNING" && known.status !== "DEPLOYING") return { id, url: known.url };

  let cursor = 0;
  for (;;) {
    const { body: site } = await read(id);
    // The log of a sample that runs already was shown before.
    if (site.latestDeployment && known.status !== "RUNNING") {
      const url = `${baseUrl}/deployments/${site.latestDeployment.id}/logs?cursor=${cursor}`;
      const { body: log } = await call<{ data: { seq: number; text: string }[] }>("GET", url, apiKey);
      for (const line of log.data) process.stdout.write(`  │ ${line.text}\n`);
      cursor = log.data.at(-1)?.seq ?? cursor;
    }
    if (site.status === "RUNNING") {
      await until(
        async () => (await request(site.url)).status === 200,
        `The sample site's answer at ${site.url}`,
        30_000,
      );
      return { id, url: site.url };
    }
    if (site.status !== "DEPLOYING" && site.status !== "PENDING")
      throw new Error(
        `The sample site is ${site.status}: ${site.latestDeployment?.error ?? "no reason known"}`,
      );
    // Two requests per round of a limit of sixty a minute: slower than a person would poll, to leave the key some
    // room.
    await delay(3000);
  }
}
