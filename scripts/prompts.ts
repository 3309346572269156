import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { toolGroups, type ToolGroup } from "../protocol/api/tools.ts";
import { offered, systemPrompt } from "../worker/assistant/prompt.ts";

/** Prints how many tokens the assistant's prompts take, by group of tools. */
const row = (name: string, count: number | string, text: string) =>
  console.log(`| ${name} | ${count} | ${encode(text).length} | ${text.length} |`);
console.log("| part | tools | tokens (o200k) | characters |\n|---|---|---|---|");
row("system prompt", "", systemPrompt);
row("no group open", 1, JSON.stringify(offered([])));
for (const group of Object.keys(toolGroups) as ToolGroup[]) {
  const [, ...own] = offered([group]);
  row(group, own.length, JSON.stringify(own));
}
const all = offered(Object.keys(toolGroups) as ToolGroup[]);
row("all groups", all.length - 1, JSON.stringify(all));
