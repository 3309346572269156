import { connect } from "../../context.ts";
import { usage } from "../../failure.ts";
import { findSite } from "../../site.ts";
import { dim, safe, styled } from "../../terminal.ts";
import { readText } from "../../utf8.ts";

type Difference = {
  added: string[];
  changed: string[];
  removed: string[];
  unknown: string[];
  values: Record<string, string>;
};

/**
 * How a .env file differs from the variables of a site. `unknown`: secrets, whose values cannot be compared. `removed` has none:
 * a pulled file lacks them, and nobody could get them back.
 */
export async function compareEnv(file: string): Promise<Difference & { id: string }> {
  const text = readText(file);
  const { parseEnvFile } = await import("../../../client/index.ts");
  const { variables, problems } = parseEnvFile(text);
  if (problems.length > 0)
    throw usage(
      `${file} has lines that are no variables:\n${problems.map((one) => `  line ${one.line}: ${safe(one.text)}`).join("\n")}`,
      "Mend them: nothing was compared or changed.",
    );
  const values = Object.fromEntries(variables.map(({ key, value }) => [key, value]));
  const { id, envVariables } = await findSite(await connect());
  const there = new Map(envVariables.map(({ key, value }) => [key, value]));
  const names = Object.keys(values);
  return {
    id,
    values,
    added: names.filter((key) => !there.has(key)),
    changed: names.filter((key) => typeof there.get(key) === "string" && there.get(key) !== values[key]),
    unknown: names.filter((key) => there.get(key) === null),
    removed: [...there].flatMap(([key, value]) =>
      value === null || Object.hasOwn(values, key) ? [] : [key],
    ),
  };
}

export const differenceText = ({ added, changed, removed, unknown }: Difference): string =>
  [
    ...added.map((key) => styled("green", `+ ${safe(key)}`)),
    ...changed.map((key) => styled("yellow", `~ ${safe(key)}`)),
    ...unknown.map((key) => dim(`? ${safe(key)} (a secret: cannot be compared)`)),
    ...removed.map((key) => styled("red", `- ${safe(key)}`)),
  ].join("\n");
