import type { SiteLogLine } from "../../protocol/agent/running.ts";
import type { LogLine } from "../../protocol/api/deployments.ts";

/** The public form of a line; microseconds are the highest precision that a JSON number holds. */
export const siteLogLine = ({ at, stream, replica, text, leftOut }: SiteLogLine): LogLine => ({
  seq: microseconds(at),
  at,
  stream: leftOut === undefined ? stream : "system",
  ...(replica !== undefined && { replica }),
  text,
  ...(leftOut !== undefined && { leftOut }),
});

function microseconds(at: string): number {
  const fraction = /\.(\d+)Z$/.exec(at)?.[1] ?? "";
  return Math.floor(Date.parse(at) / 1000) * 1_000_000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}
