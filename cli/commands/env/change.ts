import type { Answer } from "../../../client/index.ts";
import { connect, signal } from "../../context.ts";
import { dim, safe, say, showValue } from "../../terminal.ts";

export type Variable = {
  key: string;
  value: string | null;
  encrypted?: boolean | undefined;
  scope?: "build" | "runtime" | "both" | undefined;
};

const perRequest = 200;

/** Applies changes to a site's variables, and says when they take effect. Values are never printed. */
export async function changeEnv(id: string, variables: Variable[]): Promise<void> {
  const client = await connect();
  let answer: Answer<"patchSite"> | undefined;
  for (let at = 0; at < variables.length; at += perRequest)
    answer = await client.call(
      "patchSite",
      { id, envVariables: variables.slice(at, at + perRequest) },
      { signal },
    );
  if (answer === undefined || !("envVariables" in answer) || !("restartRequired" in answer)) return;
  const { restartRequired } = answer;
  const changed = variables.map(({ key, value }) => ({ key, removed: value === null }));
  showValue("variablesChanged", { changed, restartRequired }, () =>
    changed.map(({ key, removed }) => `${removed ? "Removed" : "Set"} ${safe(key)}.`).join("\n"),
  );
  if (restartRequired)
    say(dim("The running site has the old values: `berth sites restart` applies the new ones."));
}
