import type { Answer } from "../../client/index.ts";
import { command } from "../command.ts";
import { connect, signal } from "../context.ts";
import { siteId } from "../site.ts";
import { safe, show, table, when } from "../terminal.ts";

type Event = Answer<"getSiteEvents" | "getDatabaseEvents">["data"][number];

/** Of a site or a database. */
export const eventsText = (data: readonly Event[]): string =>
  table(
    data,
    {
      when: ({ at }) => when(at),
      what: ({ kind }) => kind,
      detail: ({ detail }) => safe(detail.split("\n")[0] ?? ""),
    },
    "No events.",
  );

export const events = command(
  "events",
  "Starts, stops, exits and out-of-memory kills of a running site",
  "getSiteEvents",
)
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    show(
      "getSiteEvents",
      await client.call("getSiteEvents", { id: await siteId(client, site) }, { signal }),
      ({ data }) => eventsText(data),
    );
  });
