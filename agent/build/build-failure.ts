import type { BuildFailed } from "../docker/buildkit.ts";

/** What BuildKit says of a step that failed, in Docker 20.10 and since. */
const ofStep = [
  /^executor failed running \[(?<command>.*)\]: exit code: (?<code>\d+)$/,
  /process "(?<command>.*)" did not complete successfully: exit code: (?<code>\d+)$/,
];
/** What stands before the owner's command in a step of ours; see buildStep. */
const ours = /^(?:\/bin\/)?sh -c (?:export \w+=\\?"\$\(cat \/run\/secrets\/env_\w+\)\\?"; )*/;

/** Why a build failed, for one who does not see its log. */
export function buildFailure({ message, lastLines }: BuildFailed, memoryMb: number): string {
  // SIGKILL is how the kernel ends what uses too much memory; with cgroup v2 BuildKit may see it and say so instead.
  if (/exit code: 137\b|did not complete successfully: cannot allocate memory/.test(message))
    return `The build was killed, most likely because it used more than the ${memoryMb} MB of memory a build has: let it use less.`;
  const step = ofStep.map((pattern) => pattern.exec(message)?.groups).find(Boolean);
  if (!step) return `The build failed: ${message}. See the deployment's log.`;
  const command = (step["command"] ?? "").replace(ours, "");
  const shown = command.length > 200 ? `${command.slice(0, 200)}…` : command;
  return `The build failed: "${shown}" exited with code ${step["code"]}. ${saidLast(lastLines)}`;
}

function saidLast(lines: readonly string[]): string {
  if (lines.length === 0) return "It printed nothing.";
  let shown = "";
  for (const line of lines.map((text) => text.trim()).toReversed()) {
    const longer = shown === "" ? line : `${line} | ${shown}`;
    // None is cut: half a secret is known to nobody.
    if (longer.length > 1500) break;
    shown = longer;
  }
  return shown === "" ? "See the deployment's log." : `Its last lines: ${shown}`;
}
