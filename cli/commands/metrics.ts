import type { Answer } from "../../client/index.ts";
import { command, whole } from "../command.ts";
import { connect, signal } from "../context.ts";
import { siteId } from "../site.ts";
import { dim, show, size, styled, when } from "../terminal.ts";

const bars = "▁▂▃▄▅▆▇█";
const curve = (values: number[]): string => {
  const most = Math.max(...values, 0);
  return values
    .map((value) => bars[most === 0 ? 0 : Math.min(7, Math.floor((value / most) * 7.999))])
    .join("");
};

export const metrics = command(
  "metrics",
  "CPU, memory, network and disk of a running site, minute by minute",
  "getSiteMetrics",
)
  .argument("[site]", "name or id")
  .option("--minutes <n>", "how many of the latest minutes", whole, 60)
  .action(async (site, options) => {
    const client = await connect();
    const answer = await client.call("getSiteMetrics", { id: await siteId(client, site) }, { signal });
    show("getSiteMetrics", answer, ({ data }) => metricsText(data, options.minutes));
  });

const row = (name: string, now: string, values: number[]) =>
  `${dim(name.padEnd(11))}${now.padEnd(14)}${styled("cyan", curve(values.slice(-60)))}`;

export function metricsText(data: Answer<"getSiteMetrics">["data"], minutes: number): string {
  const recent = data.slice(-Math.max(1, minutes));
  const last = recent.at(-1);
  if (last === undefined) return dim("No measurements yet: the first comes after a minute.");
  return [
    row(
      "CPU",
      `${(last.cpuMilli / 10).toFixed(1)}%`,
      recent.map(({ cpuMilli }) => cpuMilli),
    ),
    row(
      "Memory",
      size(last.memoryMb),
      recent.map(({ memoryMb }) => memoryMb),
    ),
    row(
      "Received",
      `${size(last.networkInBytes / 1_048_576)}/min`,
      recent.map(({ networkInBytes }) => networkInBytes),
    ),
    row(
      "Sent",
      `${size(last.networkOutBytes / 1_048_576)}/min`,
      recent.map(({ networkOutBytes }) => networkOutBytes),
    ),
    row(
      "Disk",
      last.diskMb === null ? "–" : size(last.diskMb),
      recent.map(({ diskMb }) => diskMb ?? 0),
    ),
    dim(`per minute, ${recent.length} min to ${when(last.at)}; 100% is one core`),
  ].join("\n");
}
