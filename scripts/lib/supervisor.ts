import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "./client.ts";

type Program = {
  name: string;
  file: string;
  args: string[];
  env?: Record<string, string>;
  /** A health check, because a hanging program may stay alive. One that does not answer for this long is restarted. */
  answersAt?: { url: string; withinMs: number };
  /** How long it may take to end; 8 seconds unless given. */
  endsWithinMs?: number;
};

type Starting = {
  readyLine: string;
  wasReady: boolean;
  resolve: () => void;
  reject: (error: Error) => void;
};

/** These programs work little and wait long: a small young generation and few arenas keep them small. */
export const smallNode = ["--max-semi-space-size=1", "--optimize-for-size", "--v8-pool-size=1"];

/** glibc raises its thresholds whenever something large is freed, and keeps what is freed below them (mallopt(3)). */
export const smallMalloc = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
  MALLOC_TRIM_THRESHOLD_: "131072",
};

/**
 * How workerd collects garbage, by Miniflare's variable. V8 would let the heap of a busy Worker grow to twice and three times what it holds,
 * never give that back, and then stand still for as long as it takes to look through it.
 */
export const smallHeap = {
  MINIFLARE_WORKERD_V8_FLAGS: "--max-semi-space-size=8 --heap-growing-percent=50",
};

/** The exit code of a program for which a restart is pointless (sysexits.h: EX_CONFIG). */
export const wrongSetUp = 78;

/** Exists while programs run; a killed run leaves it. */
export const processesFile = (stateDirectory: string): string => join(stateDirectory, "processes.json");

/** Runs programs, restarts those that end, and ends all of them; `processes.json` lists their process ids. */
export class Supervisor {
  private readonly stateDirectory: string;
  private readonly children = new Map<Program, ChildProcess>();
  private stopping = false;

  constructor(stateDirectory: string) {
    this.stateDirectory = stateDirectory;
    mkdirSync(join(stateDirectory, "logs"), { recursive: true });
  }

  /** Resolves once the program has printed `readyLine` (at once if none is given), rejects if it never does. */
  start(program: Program, readyLine = ""): Promise<void> {
    return new Promise((resolve, reject) => {
      const starting: Starting = { readyLine, wasReady: readyLine === "", resolve, reject };
      this.launch(program, 0, starting);
      if (starting.wasReady) resolve();
    });
  }

  /** Sends SIGTERM to all, and SIGKILL to those that remain after their time. */
  async stop(): Promise<void> {
    this.stopping = true;
    const ended = [...this.children].map(async ([{ endsWithinMs = 8000 }, child]) => {
      const exit = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await Promise.race([exit, delay(endsWithinMs, undefined, { ref: false })]);
      child.kill("SIGKILL");
    });
    await Promise.all(ended);
    rmSync(processesFile(this.stateDirectory), { force: true });
  }

  private launch(program: Program, failures: number, starting: Starting): void {
    if (this.stopping) return starting.reject(new Error("Ending"));
    const log = join(this.stateDirectory, "logs", `${program.name}.log`);
    const startedAt = performance.now();
    // In its own process group, so that Ctrl-C reaches only the supervisor, which then ends programs in order; the
    // pipe on standard input closes when the supervisor ends in any way.
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", ...smallNode, program.file, ...program.args],
      {
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
        env: {
          ...process.env,
          ...smallMalloc,
          ...program.env,
          BERTH_EXIT_WITH_PARENT: "1",
        },
      },
    );
    this.children.set(program, child);
    if (program.answersAt) void endWhenSilent(child, program.answersAt);
    this.writeProcesses();
    let last = "";
    const keep = (chunk: Buffer) => {
      unlessFull(() => appendFileSync(log, chunk));
      last = (last + chunk.toString()).slice(-2000);
      if (starting.wasReady || !last.includes(starting.readyLine)) return;
      starting.wasReady = true;
      starting.resolve();
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    child.stdin.on("error", () => undefined);
    child.once("exit", (code, signal) => {
      unlessFull(() => appendFileSync(log, `— ended with ${signal ?? code}\n`));
      // What a program leaves behind would block its ports for the next one.
      killGroup(child);
      this.children.delete(program);
      if (this.stopping) return starting.reject(new Error("Ending"));
      const flapping = performance.now() - startedAt < 2000 ? failures + 1 : 0;
      if ((flapping >= 8 || code === wrongSetUp) && !starting.wasReady)
        return starting.reject(new Error(`${program.name} does not start; its last output:\n${last}`));
      setTimeout(() => this.launch(program, flapping, starting), Math.min(5000, 100 * 2 ** flapping));
    });
  }

  private writeProcesses(): void {
    const file = processesFile(this.stateDirectory);
    const ids = Object.fromEntries([...this.children].map(([{ name }, { pid }]) => [name, pid]));
    unlessFull(() => {
      writeFileSync(`${file}.new`, JSON.stringify(ids, null, 2));
      renameSync(`${file}.new`, file);
    });
  }
}

/** Programs keep running if nothing can be written. */
function unlessFull(write: () => void): void {
  try {
    write();
  } catch {
    // The next write includes it.
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

async function endWhenSilent(
  child: ChildProcess,
  { url, withinMs }: NonNullable<Program["answersAt"]>,
): Promise<void> {
  // Starting takes longer.
  let deadline = performance.now() + 5 * withinMs;
  while (child.exitCode === null && child.signalCode === null) {
    await delay(withinMs / 20, undefined, { ref: false });
    const answered = await request(url, { timeoutMs: withinMs / 4 }).then(
      () => true,
      () => false,
    );
    if (answered) deadline = performance.now() + withinMs;
    else if (performance.now() > deadline) return killGroup(child);
  }
}
