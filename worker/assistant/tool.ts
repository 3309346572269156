import type { ToolInput, ToolName, ToolOutput } from "../../protocol/api/tools.ts";
import type { Ctx } from "../ctx.ts";

/** The answer of a tool that contains a secret: `text` goes to the person's screen, `result` to the model. */
export class Revealed<Result> {
  readonly result: Result;
  readonly text: string;
  constructor(result: Result, text: string) {
    this.result = result;
    this.text = text;
  }
}

/** What the person is asked to confirm. `version` is of all that it says: if that has changed since, nothing is done. */
export type Consequence = { summary: string; version: string };

export type Tool<Name extends ToolName> = {
  /** Resolves names within the account and acts through the dispatcher, which authorizes and records. */
  run(ctx: Ctx, input: ToolInput<Name>): Promise<ToolOutput<Name> | Revealed<ToolOutput<Name>>>;
  /** For tools that ask, those that show a secret among them: what would happen, determined by code; null: with these arguments nothing is to be confirmed. */
  consequence?(ctx: Ctx, input: ToolInput<Name>): Promise<Consequence | null>;
  /** What a trial says about it. It is made once, to ask: its answer is another at each moment, and no part of the version. */
  tried?(ctx: Ctx, input: ToolInput<Name>): Promise<string>;
};
export type Tools<Name extends ToolName> = { [Key in Name]: Tool<Key> };
