import { on } from "node:events";
import type { MessagePort } from "node:worker_threads";
import type { SharedBase } from "./dockerfile/shared.ts";
import { prepareBuild, type Input, type Prepared } from "./prepare.ts";

/** What the thread is given to begin with. */
export type Given = { program: "prepare"; folder: string; input: Input; buildCaFile: string | null };
export type FromThread =
  | { type: "canHave"; image: string }
  | { type: "shared"; base: SharedBase }
  | { type: "prepared"; prepared: Omit<Prepared, "context"> }
  /** A piece of the context; null: it is whole. */
  | { type: "piece"; bytes: Uint8Array | null };
export type ToThread =
  /** The repository is there. */
  | { type: "begin" }
  | { type: "has"; has: boolean }
  | { type: "name"; name: string | null }
  | { type: "next" };

const pieceBytes = 256 * 1024;

/** Reads one repository for a build, and hands its context over piece by piece. */
export async function prepareInThread(
  port: MessagePort,
  { folder, input, buildCaFile }: Given,
): Promise<void> {
  const heard = on(port, "message");
  const say = (message: FromThread) => port.postMessage(message);
  async function hear(): Promise<ToThread> {
    const { value } = (await heard.next()) as { value: [ToThread] };
    return value[0];
  }
  const canHave = async (image: string) => {
    say({ type: "canHave", image });
    const answer = await hear();
    return answer.type === "has" && answer.has;
  };
  const shared = async (base: SharedBase) => {
    say({ type: "shared", base });
    const answer = await hear();
    return answer.type === "name" ? answer.name : null;
  };
  await hear();
  const { context, ...prepared } = await prepareBuild(folder, input, buildCaFile, canHave, shared);
  say({ type: "prepared", prepared });
  let pieces: Buffer[] = [];
  let bytes = 0;
  const hand = async (): Promise<void> => {
    await hear();
    say({ type: "piece", bytes: Buffer.concat(pieces) });
    [pieces, bytes] = [[], 0];
  };
  for await (const chunk of context as AsyncIterable<Buffer>) {
    pieces.push(chunk);
    if ((bytes += chunk.length) >= pieceBytes) await hand();
  }
  if (bytes > 0) await hand();
  await hear();
  say({ type: "piece", bytes: null });
}
