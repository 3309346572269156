import type { Client } from "../../client/index.ts";
import { command, whole } from "../command.ts";
import { connect, signal } from "../context.ts";
import { usage } from "../failure.ts";
import { lineOf, printLine, type LogLine } from "../log-lines.ts";
import { siteId } from "../site.ts";
import { dim, say } from "../terminal.ts";

export const logs = command("logs", "The log of a running site", { lines: "logLine" })
  .argument("[site]", "name or id")
  .option("-f, --follow", "keep going until Ctrl-C")
  .option("-n, --tail <lines>", "how many of the latest lines", whole, 100)
  .option("--since <time>", "only later lines: 90s, 15m, 2h, 1d or a time such as 2026-11-21T12:00:00Z")
  .option(
    "--search <text>",
    "only lines with this text, ignoring case; without -f also from removed containers",
  )
  .option("--replica <n>", "only lines of this replica", whole)
  .option("--time", "show the time before each line")
  .action(async (site, options) => {
    const client = await connect();
    const id = await siteId(client, site);
    const since = options.since === undefined ? undefined : sinceTime(options.since, Date.now());
    const { search, replica } = options;
    const wanted = matching(options);
    let isEmpty = true;
    const printOne = (line: LogLine) => {
      isEmpty = false;
      printLine(line, options.time ?? false);
    };
    const printLast = (lines: readonly LogLine[]) =>
      lines.slice(Math.max(0, lines.length - options.tail)).forEach(printOne);
    const sayNone = () => {
      if (!isEmpty || options.tail === 0) return;
      const isAll = since === undefined && search === undefined && replica === undefined;
      say(dim(isAll ? "No lines: no container of the site has written any." : "No such lines."));
    };
    if (search !== undefined && !options.follow) {
      const limit = replica === undefined ? Math.min(Math.max(options.tail, 1), 500) : 500;
      const found = await client.call("searchSiteLogs", { id, text: search, from: since, limit }, { signal });
      printLast(found.data.filter((line) => replica === undefined || line.replica === replica));
      sayNone();
      if (!found.complete) say(dim("There may be older lines: use --since or a larger --tail, up to 500."));
      return;
    }
    let after = since;
    if ((search ?? replica) !== undefined && (!options.follow || since === undefined)) {
      // As many as the service gives: it cuts a tail before lines are told apart.
      const { data } = await client.call("getSiteLogs", { id, tail: 1000, since }, { signal });
      printLast(data.filter(wanted));
      if (!options.follow) return sayNone();
      after = data.at(-1)?.at;
    }
    await printLog(
      client,
      "getSiteLogs",
      { id, tail: options.tail, since: after },
      options.follow ?? false,
      (line) => {
        if (wanted(line)) printOne(line);
      },
    );
    if (!options.follow) sayNone();
  });

const matching =
  ({ search, replica }: { search?: string; replica?: number }) =>
  (line: LogLine): boolean =>
    line.leftOut !== undefined ||
    ((search === undefined || line.text.toLowerCase().includes(search.toLowerCase())) &&
      (replica === undefined || line.replica === replica));

/** The latest lines of a running site or database, and those that follow. */
export async function printLog(
  client: Client,
  operation: "getSiteLogs" | "getDatabaseLogs",
  input: { id: string; tail: number; since: string | undefined },
  follow: boolean,
  each: (line: LogLine) => void,
): Promise<void> {
  if (!follow) {
    const { data } = await client.call(operation, input, { signal });
    data.forEach(each);
    return;
  }
  for await (const event of client.stream(operation, input, { signal })) {
    const line = lineOf(event);
    if (line !== null) each(line);
  }
}

const unitsMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The time that `90s`, `15m`, `2h` or `1d` before `nowMs` is, or a time as it is given. */
export function sinceTime(text: string, nowMs: number): string {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(nowMs - Number(count) * (unitsMs[unit] ?? 0)).toISOString();
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(time))
    throw usage(`${text} is not a time.`, "Give 90s, 15m, 2h, 1d or 2026-11-21T12:00:00Z.");
  return new Date(time).toISOString();
}
