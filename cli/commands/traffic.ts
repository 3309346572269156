import { command } from "../command.ts";
import { connect, signal } from "../context.ts";
import { usage } from "../failure.ts";
import { siteId } from "../site.ts";
import { bold, fields, safe, show, size } from "../terminal.ts";

const windows = ["1h", "24h", "7d", "30d"] as const;

const ms = (value: number | null): string | null => (value === null ? null : `${value.toFixed(1)} ms`);
const tops = (title: string, list: { value: string; requests: number }[]): string =>
  list.length === 0
    ? ""
    : `\n\n${bold(title)}\n${list.map((one) => `${String(one.requests).padStart(8)}  ${safe(one.value)}`).join("\n")}`;

export const traffic = command(
  "traffic",
  "How many requests a site answers, with which statuses, how fast, and the most frequent",
  "getSiteRequestStats",
)
  .argument("[site]", "name or id")
  .option("--window <window>", "1h, 24h, 7d or 30d", "1h")
  .action(async (site, options) => {
    const window = windows.find((one) => one === options.window);
    if (window === undefined)
      throw usage(`${options.window} is not a window.`, `Give ${windows.join(", ")}.`);
    const client = await connect();
    show(
      "getSiteRequestStats",
      await client.call("getSiteRequestStats", { id: await siteId(client, site), window }, { signal }),
      ({ totals, top }) =>
        fields({
          Requests: `${totals.requests}, ${totals.perSecond.toFixed(2)} a second`,
          Statuses: Object.entries(totals.statuses)
            .filter(([, count]) => count > 0)
            .map(([name, count]) => `${name} ${count}`)
            .join(", "),
          Half: ms(totals.p50Ms),
          "95 of 100": ms(totals.p95Ms),
          "99 of 100": ms(totals.p99Ms),
          Received: size(totals.bytesIn / 1024 ** 2),
          Sent: size(totals.bytesOut / 1024 ** 2),
        }) +
        tops("Paths", top.paths) +
        tops("Referrers", top.referrers),
    );
  });
