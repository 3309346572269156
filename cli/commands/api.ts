import { command, several } from "../command.ts";
import { connection, clientFor, signal, standardInput } from "../context.ts";
import { usage } from "../failure.ts";
import { print } from "../terminal.ts";

export const api = command(
  "api",
  "Call any operation of the API by its id, such as listSites, or by its path",
  {
    words: "the answer of the operation; always JSON",
  },
)
  .argument("<operation>", "an operation's id (berth api --list), or a path such as /sites")
  .argument("[field=value...]", "parameters and fields of the body; a value that is JSON is taken as such")
  .option("-X, --method <method>", "with a path: the HTTP method", "GET")
  .option("-F, --raw-field <field=value>", "a field whose value is text even if it looks like JSON", several)
  .option("--input", "read the body, a JSON object, from standard input")
  .action(async (operation, pairs, options) => {
    const { url, token } = connection();
    const client = await clientFor(url, token);
    const { operationNamed } = await import("../../client/index.ts");
    const known = operationNamed(operation, options.method);
    if (known === undefined)
      throw usage(
        `There is no operation ${operation}.`,
        `${url}/docs lists all of them; their ids are the anchors there.`,
      );
    const input: Record<string, unknown> = { ...known.params };
    if (options.input) Object.assign(input, objectOf(await standardInput()));
    for (const pair of pairs) {
      const [name, value] = split(pair);
      input[name] = isQuery(known.queryNames, name) ? value : parsed(value);
    }
    for (const pair of options.rawField ?? []) {
      const [name, value] = split(pair);
      input[name] = value;
    }
    print(await client.text(known.id, input, { signal }));
  });

const isQuery = (names: string[], name: string): boolean => names.includes(name);

function split(pair: string): [string, string] {
  const at = pair.indexOf("=");
  if (at < 1) throw usage(`${pair} is not field=value.`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function objectOf(text: string): object {
  const value = parsed(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw usage("Standard input is not a JSON object.");
  return value;
}
