import { spawn, type ChildProcess } from "node:child_process";

const running = new Set<ChildProcess>();
let ending = false;

/** Ends running programs with all their children and prevents further steps; clean-up programs still run. */
export function endSteps(): void {
  ending = true;
  for (const child of running) killGroup(child);
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGTERM");
  } catch {
    // It has ended.
  }
}

/**
 * Resolves when the program has succeeded. It leads its own process group: its children end with it, and Ctrl-C
 * reaches us first.
 */
function ended(child: ChildProcess, toTheEnd = false): Promise<void> {
  if (!toTheEnd) running.add(child);
  return new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`ended with ${signal ?? code}`)),
    );
  }).finally(() => running.delete(child));
}

/**
 * Runs a program with arguments and returns its output. `toTheEnd` spares it from endSteps. @throws with its last
 * lines if it fails
 */
export async function run(
  program: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; timeoutMs?: number; toTheEnd?: boolean } = {},
): Promise<string> {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    env: { ...process.env, ...options.env },
  });
  let printed = "";
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => ((printed += chunk), keep(chunk)));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => keep(chunk));
  const keep = (chunk: string) => (said = (said + chunk).slice(-20_000));
  const timer = options.timeoutMs && setTimeout(() => killGroup(child), options.timeoutMs);
  try {
    await ended(child, options.toTheEnd);
    return printed;
  } catch (error) {
    const lastLines = said.trim().split("\n").slice(-15).join("\n");
    throw new Error(`${program} ${args.join(" ")} failed:\n${lastLines || String(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the program runs and succeeds. */
export const succeeds = (program: string, args: string[], timeoutMs = 10_000): Promise<boolean> =>
  run(program, args, { timeoutMs }).then(
    () => true,
    () => false,
  );

/** Pipes one program's output into another's input; both must succeed. */
export async function pipe(from: [string, string[]], to: [string, string[]]): Promise<void> {
  const source = spawn(...from, { stdio: ["ignore", "pipe", "inherit"], detached: true });
  const sink = spawn(...to, { stdio: ["pipe", "ignore", "inherit"], detached: true });
  // A sink that ends early is reported by its exit.
  sink.stdin.on("error", () => undefined);
  source.stdout.pipe(sink.stdin);
  await Promise.all([ended(source), ended(sink)]);
}

/** Runs a long step and prints its duration. */
export async function step<T>(title: string, work: () => Promise<T>): Promise<T> {
  if (ending) throw new Error("Ending");
  process.stdout.write(`• ${title} …\n`);
  const started = performance.now();
  const result = await work();
  const seconds = (performance.now() - started) / 1000;
  if (seconds > 2) process.stdout.write(`  done in ${seconds.toFixed(0)} s\n`);
  return result;
}
