import * as z from "zod";
import { activityActors } from "../states.ts";
import { Timestamp } from "./common.ts";

/** The environment after one change. Values are never part of it. */
export const EnvVersion = z
  .object({
    version: z.number().int(),
    at: Timestamp,
    actor: z.enum(activityActors).nullable().describe("null: from before authors were recorded."),
    actorId: z.string().nullable().describe("The key, session or conversation that made the change."),
    restoredFrom: z.number().int().nullable().describe("The earlier version that it restored."),
    changes: z
      .array(z.object({ key: z.string(), change: z.enum(["added", "changed", "removed"]) }))
      .describe("Compared with the previous version in the list; for the oldest one, everything is added."),
    variables: z.number().int().describe("Number of variables."),
    current: z.boolean().describe("Restarts and deployments use this version."),
  })
  .meta({ id: "EnvVersion" });
export type EnvVersion = z.infer<typeof EnvVersion>;

/** Newest first: at least the last 20 versions. */
export const EnvHistory = z.object({ data: z.array(EnvVersion) });
export type EnvHistory = z.infer<typeof EnvHistory>;

export const EnvRestore = z.strictObject({
  version: z.number().int().min(1).describe("A version of the environment's history."),
});
export type EnvRestore = z.infer<typeof EnvRestore>;
