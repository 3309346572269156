import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { log } from "./log.ts";

/** Replaces a file as a whole, readable by its owner only: after a power cut it is the old or the new one. */
export function writeAtomically(file: string, text: string): void {
  const temporary = `${file}.new`;
  const descriptor = openSync(temporary, "w", 0o600);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(temporary, file);
  keepInPlace(dirname(file));
}

/** Without it, what is in place and answered from now may be gone after a power cut only. */
function keepInPlace(folder: string): void {
  try {
    const directory = openSync(folder, "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  } catch (error) {
    log("error", "The disk does not say that what was written is kept", { folder, error });
  }
}
