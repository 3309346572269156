import { expect } from "vitest";
import { tools, type ToolName } from "../../protocol/api/tools.ts";

/** Holds a result of a tool, as its caller gets it, to the tool's schema: nothing is missing, and nothing more is there. */
export function holdToSchema(name: ToolName, result: unknown): void {
  expect([name, tools[name].output.parse(result)]).toEqual([name, result]);
}
