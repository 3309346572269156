import * as z from "zod";
import { idOf } from "../protocol/api/common.ts";
import type { FromAgent } from "../protocol/agent/messages.ts";

const error =
  "The agent of this host does not know what it is asked for, since its version is not the service's. Ask the operator to update the agent, then try again.";

/** As much of what is asked for as every version has. */
const Asked = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ask"), requestId: z.string().min(1).max(64) }),
  z.object({ type: z.literal("openStream"), streamId: z.number().int() }),
  z.object({
    type: z.literal("job"),
    attempt: z.number().int().positive(),
    job: z.object({ id: idOf("job") }),
  }),
]);

/** The refusal of a question, stream or job with fields that only another version knows; null: it is none of these. */
export function refusalOfNewer(message: unknown): FromAgent | null {
  const { data } = Asked.safeParse(message);
  switch (data?.type) {
    case undefined:
      return null;
    case "ask":
      return { type: "answer", requestId: data.requestId, answer: { kind: "refused", error }, last: true };
    case "openStream":
      return { type: "streamClosed", streamId: data.streamId, error, exitCode: null };
    case "job": {
      const { attempt, job } = data;
      return { type: "failed", jobId: job.id, attempt, error, cancelled: false, durations: null };
    }
  }
}
