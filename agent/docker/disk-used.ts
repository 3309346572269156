import { execFile } from "node:child_process";

/** The default limit of a walk over a tenant's files, which runs at the lowest priority. */
const walkMs = 20_000;

/** `bytesPerFile`: counts files instead, each as this many bytes. */
export type Count = { bytesPerFile?: number; limitMs?: number };

/** Bytes below each folder, in the given order; null if they could not be counted in time. */
export function diskUsed(
  folders: readonly string[],
  { bytesPerFile = 0, limitMs = walkMs }: Count = {},
): Promise<number[] | null> {
  if (folders.length === 0) return Promise.resolve([]);
  return new Promise((resolve) => {
    execFile(
      "nice",
      ["-n", "19", "du", "-s", "-x", bytesPerFile > 0 ? "--inodes" : "--block-size=1", "--", ...folders],
      {
        timeout: limitMs,
        killSignal: "SIGKILL",
        maxBuffer: 1024 * 1024,
        env: { ...process.env, LC_ALL: "C" },
      },
      (error, stdout, stderr) => {
        const bytes = stdout
          .split("\n")
          .filter(Boolean)
          .map((line) => Number.parseInt(line, 10) * (bytesPerFile || 1));
        // A file that disappears during the count is not a failure.
        const isWhole = (error === null || error.code === 1) && !/Permission denied/.test(stderr);
        resolve(isWhole && bytes.length === folders.length ? bytes : null);
      },
    );
  });
}
