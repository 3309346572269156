import { FileSender } from "../docker/send-files.ts";
import { keepingTimes } from "./file-times.ts";
import type { SharedBase } from "./dockerfile/shared.ts";
import { prepareBuild, type Input, type Steps } from "./prepare.ts";

/** What a reader is given to begin with. `fileTimes` is the file of `keepingTimes`; null: the files have the times of their fetch. */
export type Given = {
  program: "prepare";
  folder: string;
  input: Input;
  buildCaFile: string | null;
  fileTimes: string | null;
};
export type Said =
  | { type: "canHave"; image: string }
  | { type: "shared"; base: SharedBase }
  | { type: "prepared"; prepared: Steps }
  /** Of the context, to BuildKit, on the stream of that number; null: there is no more. */
  | { type: "piece"; stream: number; bytes: Uint8Array | null };
export type Heard =
  /** The repository is there. */
  | { type: "begin" }
  | { type: "has"; has: boolean }
  | { type: "name"; name: string | null }
  /** The next piece is waited for. */
  | { type: "next"; stream: number }
  /** What BuildKit said on it. */
  | { type: "heard"; stream: number; bytes: Uint8Array };

/** Reads one repository for a build, then sends its context to BuildKit as often as it asks. @param hear answers undefined once the build is over */
export async function prepareInReader(
  { folder, input, buildCaFile, fileTimes }: Given,
  hear: () => Promise<Heard | undefined>,
  say: (message: Said) => void,
): Promise<void> {
  const canHave = async (image: string) => {
    say({ type: "canHave", image });
    const answer = await hear();
    return answer?.type === "has" && answer.has;
  };
  const shared = async (base: SharedBase) => {
    say({ type: "shared", base });
    const answer = await hear();
    return answer?.type === "name" ? answer.name : null;
  };
  await hear();
  const { context, ...prepared } = await prepareBuild(folder, input, buildCaFile, canHave, shared);
  say({ type: "prepared", prepared });
  const timed = fileTimes === null ? context : keepingTimes(context, fileTimes);
  const streams = new Map<number, FileSender>();
  for (let message = await hear(); message !== undefined; message = await hear()) {
    if (message.type !== "next" && message.type !== "heard") continue;
    const { stream } = message;
    const sender =
      streams.get(stream) ?? new FileSender(timed(), (bytes) => say({ type: "piece", stream, bytes }));
    streams.set(stream, sender);
    if (message.type === "heard") sender.hear(message.bytes);
    else sender.take();
  }
  for (const sender of streams.values()) sender.close();
}
