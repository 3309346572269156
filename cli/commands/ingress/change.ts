import type { Answer, Client, Input } from "../../../client/index.ts";
import { signal } from "../../context.ts";
import { show } from "../../terminal.ts";

type Change = Extract<Input<"patchSite">, { settings: unknown }>["settings"]["ingress"];

/** Takes effect at once. */
export async function changeIngress(
  client: Client,
  id: string,
  ingress: Change,
  said: string,
): Promise<void> {
  const answer = await client.call("patchSite", { id, settings: { ingress } }, { signal });
  show("getSite", answer as Answer<"getSite">, () => said);
}
