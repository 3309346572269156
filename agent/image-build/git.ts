import { spawn } from "node:child_process";
import { gitLogin } from "../../protocol/git-token.ts";
import { JobError } from "../job.ts";

/** Megabytes a repository's working tree and objects may take. */
export const maxMegabytes = 1024;
/** Megabytes of memory for one run of Git, which is as much as any repository within the limits needs. */
export const memoryMegabytes = 2048;
/** A Git host that puts a large repository together sends next to nothing meanwhile. */
export const quietSeconds = 120;
const timeoutMs = 5 * 60_000;

/** Nothing of the machine's Git configuration, no prompt, no protocol but the one asked for, no redirect, no hook. */
export function gitOptions(scheme: "https" | "http", pin: string | null): string[] {
  const settings = [
    "http.followRedirects=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    `protocol.${scheme}.allow=always`,
    "transfer.fsckObjects=true",
    // Harmless, and in repositories whose old hosts and imports wrote them so.
    ...["zeroPaddedFilemode", "badTimezone", "missingSpaceBeforeDate"].map((id) => `fetch.fsck.${id}=ignore`),
    "submodule.recurse=false",
    "credential.helper=",
    // Nothing of it outlives the job.
    "core.fsync=none",
    "http.lowSpeedLimit=1000",
    `http.lowSpeedTime=${quietSeconds}`,
    ...(pin === null ? [] : [`http.curloptResolve=${pin}`]),
  ];
  return settings.flatMap((setting) => ["-c", setting]);
}

export function gitEnvironment(home: string, scheme: string, token: string | null): NodeJS.ProcessEnv {
  const certificates = process.env["GIT_SSL_CAINFO"] ?? process.env["NODE_EXTRA_CA_CERTS"];
  return {
    PATH: process.env["PATH"],
    HOME: home,
    LANG: "C",
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ALLOW_PROTOCOL: scheme,
    GIT_LFS_SKIP_SMUDGE: "1",
    ...(certificates && { GIT_SSL_CAINFO: certificates }),
    // In the environment, so that no process list shows it.
    ...(token !== null && {
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "http.extraHeader",
      GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from(gitLogin(token)).toString("base64")}`,
    }),
  };
}

type Run = { code: number; stdout: string; stderr: string };

/**
 * @param onOutput takes what it prints, as it comes, a character for each byte: paths are of any bytes; a false ends it. Left out: it is
 * answered as a whole.
 */
export function git(
  args: string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  onOutput?: (text: string) => boolean,
): Promise<Run> {
  return new Promise((resolve, reject) => {
    // A file larger than the cap ends Git with SIGXFSZ; prlimit is part of every Linux with util-linux.
    const limits = [`--fsize=${maxMegabytes * 1024 * 1024}`, `--data=${memoryMegabytes * 1024 * 1024}`];
    const child = spawn("prlimit", [...limits, "--", "git", ...args], {
      // Not in a folder whose repository, with settings of its own, Git would take up.
      cwd: "/",
      env,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding(onOutput ? "latin1" : "utf8").on("data", (text: string) => {
      if (onOutput === undefined) stdout = (stdout + text).slice(0, 1_000_000);
      else if (!onOutput(text)) child.kill("SIGKILL");
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(-10_000)));
    child.once("error", (error) =>
      reject(
        signal.aborted || error.name !== "AbortError"
          ? error
          : new JobError("The repository took more than 5 minutes to fetch: make it smaller."),
      ),
    );
    child.once("close", (code) => resolve({ code: code ?? 128, stdout, stderr }));
  });
}
