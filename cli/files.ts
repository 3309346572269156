import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";

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
