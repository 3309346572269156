import { splitLastLines } from "./last-lines.ts";

const pack = /(\bits|\bthe|\bthis|'s|\b[Aa]|\b[Aa]nother|\blarger|\bsmaller) pack\b/g;

/** A text of the API or a host, in the words of pages and mails: they say plan for a pack. An app's own lines stay as they are. */
export function inPlans(text: string): string {
  const { said } = splitLastLines(text);
  return said.replaceAll(pack, "$1 plan") + text.slice(said.length);
}
