import { setTimeout as delay } from "node:timers/promises";
import type { Answer, Client } from "../client/index.ts";
import { nextCommand, signal } from "./context.ts";
import { exitCodes, Failure } from "./failure.ts";
import { lineOf, lineText, type LogLine } from "./log-lines.ts";
import { bold, cut, dim, duration, output, safe, say, spin, styled } from "./terminal.ts";

type Deployment = Answer<"getDeployment">;

/**
 * Follows a deployment to its end: its log as it is written, then its steps. @throws Failure with the reason if it did
 * not go live
 */
export async function followDeployment(client: Client, id: string): Promise<Deployment> {
  const first = await client.call("getDeployment", { id }, { signal });
  say(`${bold(`Deployment #${first.number}`)} ${dim(id)}`);
  if (first.waitsFor !== null) say(dim(safe(first.waitsFor)));
  const spinner = spin("waiting for a host …");
  let deployment = first;
  let hasEnded = false;
  try {
    for await (const event of client.stream("getDeploymentLogs", { id }, { signal })) {
      const line = lineOf(event);
      if (line === null || output.quiet) continue;
      spinner.clear();
      process.stderr.write(`${dim("│")} ${lineText(fitting(line))}\n`);
      spinner.say(line.stream === "system" ? safe(line.text) : "building …");
    }
    for (;;) {
      deployment = await client.call("getDeployment", { id }, { signal });
      hasEnded = deployment.finishedAt !== null || deployment.status === "LIVE";
      if (hasEnded) break;
      // The log ends a moment before the record.
      await delay(1000, undefined, { signal });
    }
  } finally {
    spinner.stop();
    if (!hasEnded)
      say(
        `${signal.aborted ? "\n" : ""}The deployment continues without you: ${nextCommand(`deployments follow ${id}`, null)}\nTo stop it: ${nextCommand(`deployments cancel ${id}`, null)}`,
      );
  }
  return ended(deployment);
}

/** In a terminal the steps of a build, some of which are whole scripts, take a line each; what they print is shown in full. */
const fitting = (line: LogLine): LogLine =>
  line.stream === "system" && process.stderr.isTTY
    ? { ...line, text: cut(safe(line.text), process.stderr.columns - 2) }
    : line;

function ended(deployment: Deployment): Deployment {
  const { clone, build, start, swap } = deployment.durations;
  const steps = Object.entries({ fetch: clone, build, start, swap }).filter(
    (step): step is [string, number] => step[1] !== null,
  );
  if (steps.length > 0) say(dim(steps.map(([name, ms]) => `${name} ${duration(ms)}`).join(" · ")));
  // One that was live, until a newer one took its place.
  const wasLive =
    deployment.status === "LIVE" || (deployment.status === "SUPERSEDED" && deployment.error === null);
  if (wasLive) {
    say(
      `${styled("green", "✓")} Deployment #${deployment.number} is ${deployment.status === "LIVE" ? "live" : "done, and a newer one is live"}.`,
    );
    return deployment;
  }
  const reason = deployment.error === null ? "" : `: ${safe(deployment.error)}`;
  throw new Failure(`Deployment #${deployment.number} ended as ${deployment.status}${reason}`, {
    exitCode: exitCodes.failure,
    hint: `The version in service, if any, keeps running. \`${nextCommand(`deployments logs ${deployment.id}`, null)}\` shows the log again.`,
  });
}
