import { signal } from "./context.ts";
import { Failure, usage } from "./failure.ts";
import { createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Writes an answer to a file: whole or not at all. `-` is standard output. */
export async function saveTo(response: Response, file: string, force: boolean | undefined): Promise<void> {
  if (response.body === null) throw new Failure("The service answered without a file.");
  const body = Readable.fromWeb(response.body);
  if (file === "-") {
    await pipeline(body, process.stdout, { end: false, signal });
    return;
  }
  if (existsSync(file) && !force)
    throw usage(`${file} exists.`, "Give another name, or --force to replace it.");
  const part = `${file}.part`;
  try {
    await pipeline(body, createWriteStream(part, { mode: 0o600 }), { signal });
    renameSync(part, file);
  } finally {
    rmSync(part, { force: true });
  }
}
