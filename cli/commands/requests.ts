import type { Answer } from "../../client/index.ts";
import { command, whole } from "../command.ts";
import { connect, signal } from "../context.ts";
import { siteId } from "../site.ts";
import { dim, duration, output, paginated, print, safe, show, styled } from "../terminal.ts";

export const requests = command(
  "requests",
  "A site's visitor requests, newest first; with -f as they happen",
  "getSiteRequests",
)
  .argument("[site]", "name or id")
  .option("-f, --follow", "keep going until Ctrl-C; with --json one entry of `data` per line")
  .option("--status <status>", "such as 404, 5xx, or 0: the visitor left")
  .option("--path <start>", "the beginning of the path")
  .option("--method <method>")
  .option("--limit <n>", "how many", whole, 50)
  .option("--cursor <cursor>", "the next page: nextCursor from the previous one")
  .action(async (site, { follow, status: wanted, path, method, limit, cursor }) => {
    const client = await connect();
    const filters = { id: await siteId(client, site), status: wanted, path, method };
    if (!follow) {
      show(
        "getSiteRequests",
        await client.call("getSiteRequests", { ...filters, limit, cursor }, { signal }),
        ({ data, nextCursor }) =>
          paginated(data.map(requestText).join("\n") || dim("No requests."), nextCursor),
      );
      return;
    }
    for await (const { event, data } of client.stream("getSiteRequests", filters, { signal })) {
      if (event !== "request") continue;
      print(output.json ? data : requestText(JSON.parse(data) as Request));
    }
  });

type Request = Answer<"getSiteRequests">["data"][number];

const requestText = (one: Request): string => {
  const color = one.status >= 500 || one.status === 0 ? "red" : one.status >= 400 ? "yellow" : "green";
  const query = one.query === null || one.query === "" ? "" : dim(`?${safe(one.query)}`);
  return `${dim(one.at.slice(11, 19))} ${styled(color, String(one.status).padStart(3))} ${duration(one.durationMs).padStart(8)} ${safe(one.method)} ${safe(one.path)}${query} ${dim(safe(one.address))}`;
};
