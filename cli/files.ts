import { chmodSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";

/** A new name beside a file, which no other run has. What is written there takes the file's place as a whole. */
export const besides = (file: string): string => `${file}.${crypto.randomUUID().slice(0, 8)}.part`;

/** Replaces a file as a whole, so that a crash leaves the old one or the new one. */
export function replaceFile(file: string, content: string | Uint8Array, mode: number): void {
  const part = besides(file);
  try {
    writeFileSync(part, content, { mode, flag: "wx" });
    chmodSync(part, mode);
    renameSync(part, file);
  } finally {
    rmSync(part, { force: true });
  }
}

/** Writes a person's file, as a whole: one that is there keeps its mode and its links, and what is none (a pipe) is written to. */
export function writeWhole(file: string, content: string, mode: number): void {
  const there = statSync(file, { throwIfNoEntry: false });
  if (there && !there.isFile()) writeFileSync(file, content);
  else replaceFile(there ? realpathSync(file) : file, content, there ? there.mode & 0o777 : mode);
}
