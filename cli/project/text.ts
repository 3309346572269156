import { dim, safe, styled } from "../terminal.ts";
import { isRemoval, type Step } from "./plan.ts";

const value = (one: unknown): string =>
  one === null || one === undefined
    ? dim("not set")
    : safe(typeof one === "string" ? one : JSON.stringify(one));

function line(step: Step): string {
  switch (step.kind) {
    case "createSite":
      return `site ${safe(step.name)}`;
    case "setting":
      return `${safe(step.name)}: ${value(step.before)} → ${value(step.after)}`;
    case "variable":
      return `variable ${safe(step.name)}${step.before === null ? "" : `: ${value(step.before)} → ${value(step.after)}`}`;
    case "domain":
      return `domain ${safe(step.name)}`;
    case "createDatabase":
      return `database ${safe(step.database.name)} (${step.database.type})`;
    case "linkDatabase":
      return `database ${safe(step.database.name)} as ${safe(step.variable)}`;
    case "createSchedule":
      return `schedule ${safe(step.schedule.name)}: ${safe(step.schedule.cron)} ${safe(step.schedule.command)}`;
    case "changeSchedule":
      return `schedule ${safe(step.schedule.name)}: ${Object.entries(step.changes)
        .map(([name, after]) => `${name} → ${value(after)}`)
        .join(", ")}`;
    case "removeVariable":
      return `variable ${safe(step.name)}`;
    case "removeDomain":
      return `domain ${safe(step.name)}`;
    case "removeSchedule":
      return `schedule ${safe(step.name)}`;
    default:
      throw new Error(`Nobody describes ${(step satisfies never as Step).kind}`);
  }
}

const isChange = (step: Step): boolean =>
  step.kind === "setting" ||
  step.kind === "changeSchedule" ||
  (step.kind === "variable" && step.before !== null);

/** The steps, one a line. @param prunes false: what the file does not list is kept, and shown as such */
export const planText = (steps: readonly Step[], prunes: boolean): string =>
  steps
    .map((step) =>
      isRemoval(step)
        ? prunes
          ? styled("red", `- ${line(step)}`)
          : dim(`  ${line(step)} (not in berth.json; kept)`)
        : isChange(step)
          ? styled("yellow", `~ ${line(step)}`)
          : styled("green", `+ ${line(step)}`),
    )
    .join("\n");
