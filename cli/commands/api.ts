import { command, several } from "../command.ts";
import { connection, clientFor, signal, standardInput } from "../context.ts";
import { usage } from "../failure.ts";
import { parsed, split } from "../pairs.ts";
import { safe, print, table, output } from "../terminal.ts";

export const api = command(
  "api",
  "Call any operation of the API by its id, such as listSites, or by its path; without one, list them all",
  "operation",
)
  .argument("[operation]", "an operation's id, or a path such as /sites")
  .argument("[field=value...]", "parameters and fields of the body; a value that is JSON is taken as such")
  .option("-X, --method <method>", "with a path: the HTTP method", "GET")
  .option("-F, --raw-field <field=value>", "a field whose value is text even if it looks like JSON", several)
  .option("--input", "read the body, a JSON object, from standard input")
  .option("-f, --follow", "print server-sent events as they arrive, one {event, id, data} per line")
  .action(async (operation, pairs, options) => {
    const { operationNamed, operationList } = await import("../../client/index.ts");
    if (operation === undefined) return list(operationList());
    const { url, token } = connection();
    const client = await clientFor(url, token);
    const known = operationNamed(operation, options.method);
    if (known === undefined)
      throw usage(
        `There is no operation ${operation}.`,
        `\`berth api\` lists all of them; ${url}/docs describes them.`,
      );
    const input: Record<string, unknown> = { ...known.params };
    if (options.input) Object.assign(input, objectOf(await standardInput()));
    for (const pair of pairs) {
      const [name, value] = split(pair);
      input[name] = known.textNames.includes(name) ? value : parsed(value);
    }
    for (const pair of options.rawField ?? []) {
      const [name, value] = split(pair);
      input[name] = value;
    }
    if (options.follow || known.kind === "events") {
      for await (const { event, id, data } of client.stream(
        known.id as "getSiteLogs",
        input as { id: string },
        {
          signal,
          end: ["end", "done", "error"],
        },
      ))
        print(JSON.stringify({ event, id: id ?? null, data: parsed(data) }));
      return;
    }
    if (known.kind === "json") {
      print(await client.text(known.id, input, { signal }));
      return;
    }
    const { saveTo } = await import("../download.ts");
    await saveTo(await client.file({ id: known.id, input }, { signal }), "-", false);
  });

function list(all: { id: string; method: string; path: string; summary: string }[]): void {
  if (output.json) return print(JSON.stringify({ data: all }));
  print(
    table(
      all,
      {
        id: ({ id }) => id,
        method: ({ method }) => method,
        path: ({ path }) => path,
        what: ({ summary }) => safe(summary),
      },
      "",
    ),
  );
}

function objectOf(text: string): object {
  const value = parsed(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw usage("Standard input is not a JSON object.");
  return value;
}
