import { existsSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import type { Engine } from "../docker/engine.ts";
import { followLogFile, type From, type LogPiece } from "../docker/log-file.ts";
import { engineTimeBefore } from "../docker/log-parser.ts";
import { neverWaiting } from "./never-waiting.ts";

const inspectMs = 200;

/** A container's log, live, until it ends: of the engine's files, or of its API where the agent cannot read them. */
export async function* logPieces(
  engine: Pick<Engine, "inspectContainer" | "followLog">,
  containerId: string,
  from: From,
  signal: AbortSignal,
): AsyncGenerator<LogPiece> {
  const container = await engine.inspectContainer(containerId);
  const file = container?.logFile;
  if (!container || file === undefined || !(await isReadable(file))) {
    const request = { tail: "all" as const, since: engineTimeBefore(from.after) };
    return yield* neverWaiting(engine.followLog(containerId, request, signal), from);
  }
  let { pid } = container;
  let inspectedAtMs = -Infinity;
  const isEnded = async () => {
    if (pid && existsSync(`/proc/${pid}`)) return false;
    if (performance.now() - inspectedAtMs < inspectMs) return false;
    inspectedAtMs = performance.now();
    const now = await engine.inspectContainer(containerId);
    pid = now?.pid ?? 0;
    // The engine says so once it has written all of the log.
    return !now?.running;
  };
  yield* followLogFile(file, { ...from, isEnded }, signal);
}

const isReadable = (file: string): Promise<boolean> =>
  access(file, constants.R_OK).then(
    () => true,
    () => false,
  );
