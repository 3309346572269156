import { closeSync, constants, fsyncSync, ftruncateSync, openSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { log } from "./log.ts";

/** Replaces a file as a whole, readable by its owner only: after a power cut it is the old or the new one. */
export function writeAtomically(file: string, text: string): void {
  const temporary = `${file}.new`;
  // Not emptied first: on a full disk, the room that it has is all there is.
  const descriptor = openSync(temporary, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    writeFileSync(descriptor, text);
    ftruncateSync(descriptor, Buffer.byteLength(text));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(temporary, file);
  keepInPlace(dirname(file));
}

/** The same, and room is taken for the next contents, up to twice as long: they can be written though the disk is full by then. */
export function writeWithSpare(file: string, text: string): void {
  writeAtomically(file, text);
  try {
    writeFileSync(`${file}.new`, Buffer.alloc(2 * Buffer.byteLength(text)), { mode: 0o600 });
  } catch (error) {
    log("error", "A full disk has no room for the next contents of a file", { file, error });
  }
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
