import type { ToolInput, ToolName } from "../../protocol/api/tools.ts";
import type { Ctx } from "../ctx.ts";

/** What a tool answers when part of it is a secret: `text` goes to the person's screen, `result` to the model. */
export class Revealed {
  readonly result: unknown;
  readonly text: string;
  constructor(result: unknown, text: string) {
    this.result = result;
    this.text = text;
  }
}

/** What the person is asked to agree to. `version`: of the resource; where it has changed since, nothing is done. */
export type Consequence = { summary: string; version: string | null };

export type Tool<Name extends ToolName> = {
  /** Resolves names inside the account and acts through the dispatcher, which checks and records. */
  run(ctx: Ctx, input: ToolInput<Name>): Promise<unknown>;
  /** Of a destructive tool: what would happen, gathered by code. */
  consequence?(ctx: Ctx, input: ToolInput<Name>): Promise<Consequence>;
};
export type Tools<Name extends ToolName> = { [Key in Name]: Tool<Key> };
