import { expect, it } from "vitest";
import type { Activity } from "../../protocol/api/activity.ts";
import { activityText } from "../../worker/pages/kit/activity-words.ts";

const text = (told: Pick<Activity, "operation" | "arguments">): string => activityText(told as Activity);

it.each([
  ["patchSite", { action: "deploy" }],
  ["triggerWebhook", {}],
  ["rollbackSite", {}],
  ["createBackup", {}],
  ["restoreDatabase", {}],
  ["restoreVolume", {}],
])("%s %j, which may still fail, is told as asked for", (operation, given) => {
  expect(text({ operation, arguments: given })).toMatch(/\basked (?:for|to)\b/i);
});
