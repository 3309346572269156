import { endCommand, tellEnd, type Outcome } from "../commands/end.ts";
import type { Ctx } from "../../ctx.ts";
import { commandOf, deploymentIdOf, ending, type Ended, type Kind } from "./kind.ts";
import { runOf } from "./run-spec.ts";

export const siteCommand: Kind<"site.command"> = {
  args(ctx, material) {
    const { id: commandId, command, timeoutSeconds } = commandOf(material);
    return {
      run: runOf(ctx, material),
      deploymentId: deploymentIdOf(material.job),
      commandId,
      command,
      timeoutSeconds,
    };
  },
  succeeded: (ctx, end, { exitCode, error }) =>
    commandEnded(ctx, end, { status: error === null ? "SUCCEEDED" : "FAILED", exitCode, error }),
  failed: (ctx, end, { error, cancelled }) =>
    commandEnded(ctx, end, {
      status: cancelled ? "CANCELLED" : "FAILED",
      exitCode: null,
      error: cancelled ? null : error,
    }),
};

const commandEnded = (ctx: Ctx, { job, ended }: Ended, outcome: Outcome) =>
  ending({ command: endCommand(ctx, job, outcome, ended) }, () => tellEnd(ctx, job, outcome));
