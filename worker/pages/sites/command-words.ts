import type { Command } from "../../../protocol/api/commands.ts";
import { inLabels } from "../kit/setting-labels.ts";
import type { Word } from "../kit/words.ts";

export const commandWords: Record<Command["status"], Word> = {
  QUEUED: { tone: "busy", label: "Waiting" },
  RUNNING: { tone: "busy", label: "Running" },
  SUCCEEDED: { tone: "good", label: "Succeeded" },
  FAILED: { tone: "bad", label: "Failed" },
  CANCELLED: { tone: "soft", label: "Cancelled" },
};

export const isCommandUnderWay = ({ status }: Command): boolean =>
  status === "QUEUED" || status === "RUNNING";

/** Why it failed or waits. */
export const reasonOf = ({ error, waitsFor }: Command): string => inLabels(error ?? waitsFor ?? "");

/** How it ended and how long it took: "code 1 after 2.4 s". */
export function endOf({ exitCode, startedAt, finishedAt }: Command): string {
  const seconds =
    startedAt === null || finishedAt === null
      ? null
      : ((Date.parse(finishedAt) - Date.parse(startedAt)) / 1000).toFixed(1);
  return [exitCode === null ? "" : `code ${exitCode}`, seconds === null ? "" : `after ${seconds} s`]
    .filter(Boolean)
    .join(" ");
}

/** With who ran it, if it was not a person. */
export function resultOf(command: Command): string {
  const { trigger } = command;
  const by = trigger === "schedule" ? "by a schedule" : trigger === "chat" ? "by the assistant" : "";
  return [endOf(command), by].filter(Boolean).join(" · ");
}
