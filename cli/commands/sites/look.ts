import type { Answer } from "../../../client/index.ts";
import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { exitCodes } from "../../failure.ts";
import { shown } from "../../shown.ts";
import { siteId } from "../../site.ts";
import { bold, safe, show, styled } from "../../terminal.ts";

export const diagnoseSite = command(
  "diagnose",
  "What is wrong with a site, in order, and how to fix it; exits with 1 if something is",
  "diagnoseSite",
)
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    const found = await client.call("diagnoseSite", { id: await siteId(client, site) }, { signal });
    show("diagnoseSite", found, diagnosisText);
    if (!found.healthy) process.exitCode = exitCodes.failure;
  });

function diagnosisText({ summary, checks }: Answer<"diagnoseSite">): string {
  const marks = { ok: styled("green", "✓"), problem: styled("red", "✗"), unknown: styled("yellow", "?") };
  const widest = Math.max(...checks.map(({ check }) => check.length));
  return [
    bold(safe(summary)),
    ...checks.flatMap(({ check, status, finding, fixes }) => [
      `${marks[status]} ${check.padEnd(widest)}  ${safe(finding)}`,
      ...fixes.map((fix) => `  → ${safe(fix.summary)}`),
    ]),
  ].join("\n");
}

export const siteHealth = command("health", "Probe a site's containers now", "getSiteHealth")
  .argument("[site]", "name or id")
  .action(async (site) => answered("getSiteHealth", { id: await siteId(await connect(), site) }));

export const probeSite = command(
  "probe",
  "Request a site from outside, as a visitor; exits with 1 if the site itself does not answer",
  "probeSite",
)
  .argument("[site]", "name or id")
  .option("--path <path>", "default: /")
  .option("--domain <domain>", "at one of its domains")
  .action(async (site, { path, domain }) => {
    const client = await connect();
    const found = await client.call(
      "probeSite",
      { id: await siteId(client, site), path, domain },
      { signal },
    );
    show("probeSite", found, shown);
    if (found.error !== null) process.exitCode = exitCodes.failure;
  });

export const siteDisk = command("disk", "A site's disk usage on its host", "getSiteDisk")
  .argument("[site]", "name or id")
  .action(async (site) => answered("getSiteDisk", { id: await siteId(await connect(), site) }));
