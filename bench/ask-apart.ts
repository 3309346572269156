import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";

type Asked = { tookMs: number[]; failed: number };

/** Asks for a page of this machine in a process of its own until the answers are wanted. */
export function askApart(url: string, perSecond: number): () => Promise<Asked> {
  const asks = spawn(process.execPath, [join(import.meta.dirname, "asks.ts"), url, String(perSecond)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  return async () => {
    asks.stdin.end();
    return JSON.parse(await text(asks.stdout)) as Asked;
  };
}
