import type { Answer } from "../../../client/index.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { HalfDone } from "../../failure.ts";
import { dim, safe, say, showValue } from "../../terminal.ts";

export type Variable = {
  key: string;
  value: string | null;
  encrypted?: boolean | undefined;
  scope?: "build" | "runtime" | "both" | undefined;
};

const perRequest = 200;

/**
 * Applies changes to a site's variables, and says when they take effect. Values are never printed.
 * @throws HalfDone by what ended it, once some are changed
 */
export async function changeEnv(id: string, variables: Variable[]): Promise<void> {
  const client = await connect();
  let answer: Answer<"patchSite"> | undefined;
  for (let at = 0; at < variables.length; at += perRequest) {
    const envVariables = variables.slice(at, at + perRequest);
    try {
      answer = await client.call("patchSite", { id, envVariables }, { signal });
    } catch (error) {
      throw at === 0 ? error : halfDone(variables, at, error);
    }
  }
  if (answer === undefined || !("envVariables" in answer) || !("restartRequired" in answer)) return;
  const { restartRequired } = answer;
  const changed = variables.map(({ key, value }) => ({ key, removed: value === null }));
  showValue("variablesChanged", { changed, restartRequired }, () =>
    changed.map(({ key, removed }) => `${removed ? "Removed" : "Set"} ${safe(key)}.`).join("\n"),
  );
  if (restartRequired)
    say(
      dim(`The running site has the old values: \`${nextCommand("sites restart")}\` applies the new ones.`),
    );
}

function halfDone(variables: Variable[], count: number, cause: unknown): HalfDone {
  const [first, last, next] = [0, count - 1, count].map((at) => variables[at]?.key);
  return new HalfDone(
    `${count} variables, ${first} to ${last}, are changed. The request for the other ${variables.length - count}, from ${next} on, failed: \`${nextCommand("env list")}\` shows what the site has.`,
    cause,
  );
}
