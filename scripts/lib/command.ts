import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Runs a program with arguments; answers what it printed. @throws with its last lines when it fails */
export async function run(
  program: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; timeoutMs?: number } = {},
): Promise<string> {
  try {
    const { stdout } = await execute(program, args, {
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
      timeout: options.timeoutMs ?? 0,
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      env: { ...process.env, ...options.env },
    });
    return stdout;
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: string; stdout?: string };
    const said = `${stdout ?? ""}\n${stderr ?? ""}`.trim().split("\n").slice(-15).join("\n");
    throw new Error(`${program} ${args.join(" ")} failed:\n${said || String(error)}`, { cause: error });
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
  const source = spawn(...from, { stdio: ["ignore", "pipe", "inherit"] });
  const sink = spawn(...to, { stdio: ["pipe", "ignore", "inherit"] });
  source.stdout.pipe(sink.stdin);
  const ended = (child: typeof source | typeof sink, name: string) =>
    new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) =>
        code === 0 ? resolve() : reject(new Error(`${name} ended with ${code}`)),
      );
    });
  await Promise.all([ended(source, from[0]), ended(sink, to[0])]);
}

/** A long step, with the time it took. */
export async function step<T>(title: string, work: () => Promise<T>): Promise<T> {
  process.stdout.write(`• ${title} …\n`);
  const started = performance.now();
  const result = await work();
  const seconds = (performance.now() - started) / 1000;
  if (seconds > 2) process.stdout.write(`  done in ${seconds.toFixed(0)} s\n`);
  return result;
}
