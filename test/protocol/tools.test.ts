import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { toolGroups, tools, type ToolGroup, type ToolName } from "../../protocol/api/tools.ts";

const file = (group: string) => join(import.meta.dirname, "..", "worker", "tools", `${group}.test.ts`);

it("the assistant has 95 tools", () => expect(Object.keys(tools)).toHaveLength(95));

it.each(Object.keys(toolGroups) as ToolGroup[])("the tools of %s have their tests of effect", (group) => {
  expect(existsSync(file(group)) && readFileSync(file(group), "utf8")).toContain(`effectsOf("${group}", {`);
});

it.each(Object.keys(tools) as ToolName[])("%s belongs to a group that the model can open", (name) => {
  expect(Object.keys(toolGroups)).toContain(tools[name].group);
});
