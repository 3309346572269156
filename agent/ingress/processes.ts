import { readdirSync, readFileSync } from "node:fs";

/** The processes of this machine whose arguments end so. */
export const processesWith = (args: readonly string[], folder = "/proc"): number[] =>
  readdirSync(folder)
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const found = readFileSync(`${folder}/${name}/cmdline`, "utf8").split("\0").slice(0, -1);
        return args.every((arg, index) => found[found.length - args.length + index] === arg);
      } catch {
        // It has ended.
        return false;
      }
    })
    .map(Number);
