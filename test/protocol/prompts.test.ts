import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { expect, it } from "vitest";
import { toolGroups, type ToolGroup } from "../../protocol/api/tools.ts";
import { budget } from "../../worker/assistant/prompt-budget.ts";
import { fittingGroups, offered, ownTokens, systemPrompt } from "../../worker/assistant/prompt.ts";

const groups = Object.keys(toolGroups) as ToolGroup[];
const ofGroups = (some: readonly ToolGroup[]) => JSON.stringify(offered(some));

it.each(groups)("the tools of %s take no more tokens than is counted for them", (group) => {
  const text = ofGroups([group]);
  expect(encode(text).length).toBeLessThanOrEqual(ownTokens(text));
  expect(ownTokens(text)).toBeLessThanOrEqual(budget.tools);
});

it("instructions take no more tokens than is counted for them", () => {
  expect(encode(systemPrompt).length).toBeLessThanOrEqual(ownTokens(systemPrompt));
});

it("of all groups that are opened, the last are offered, within the budget", () => {
  for (const last of groups) {
    const opened = [...groups.filter((one) => one !== last), last];
    const fitting = fittingGroups(opened, budget.tools);
    expect(fitting.at(-1)).toBe(last);
    expect(opened.slice(-fitting.length)).toEqual(fitting);
    expect(encode(ofGroups(fitting)).length).toBeLessThanOrEqual(budget.tools);
  }
  expect(fittingGroups([], budget.tools)).toEqual([]);
});
