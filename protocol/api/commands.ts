import * as z from "zod";
import { commandStatuses, commandTriggers } from "../states.ts";
import { idFilter, listQuery, Timestamp } from "./common.ts";
import { command } from "./sites.ts";

export const TimeoutSeconds = z
  .number()
  .int()
  .min(1)
  .max(3600)
  .describe("How long the command may run before it is stopped.");
export const defaultTimeoutSeconds = 600;

export const CommandCreate = z.strictObject({
  /** For `sh -c`, in the site's image. */
  command,
  timeoutSeconds: TimeoutSeconds.default(defaultTimeoutSeconds),
});
export type CommandCreate = z.infer<typeof CommandCreate>;

export const CommandListQuery = listQuery("command").extend({
  scheduleId: idFilter("schedule").describe("Only the runs of this schedule."),
});
export type CommandListQuery = z.infer<typeof CommandListQuery>;

export const Command = z
  .object({
    id: z.string(),
    siteId: z.string(),
    command: z.string(),
    timeoutSeconds: z.number().int(),
    status: z.enum(commandStatuses),
    trigger: z.enum(commandTriggers),
    scheduleId: z.string().nullable().describe("The schedule that started it."),
    deploymentId: z
      .string()
      .nullable()
      .describe("The deployment whose image it runs in; null until a host takes it."),
    exitCode: z.number().int().nullable().describe("null until the command exits."),
    error: z.string().nullable(),
    waitsFor: z
      .string()
      .nullable()
      .describe("Why the command has not started or made progress, such as an unreachable host."),
    createdAt: Timestamp,
    startedAt: Timestamp.nullable(),
    finishedAt: Timestamp.nullable(),
  })
  .meta({ id: "Command" });
export type Command = z.infer<typeof Command>;
