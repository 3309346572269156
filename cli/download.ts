import { signal } from "./context.ts";
import { Failure, usage } from "./failure.ts";
import { besides } from "./files.ts";
import { safe, showValue } from "./terminal.ts";
import { createWriteStream, existsSync, renameSync, rmSync, statSync } from "node:fs";

/** Writes an answer to a file: whole or not at all, and says so. `-` is standard output, with nothing else on it. */
export async function saveTo(response: Response, file: string, force: boolean | undefined): Promise<void> {
  if (response.body === null) throw new Failure("The service answered without a file.");
  const [{ Readable }, { pipeline }] = await Promise.all([
    import("node:stream"),
    import("node:stream/promises"),
  ]);
  const body = Readable.fromWeb(response.body);
  if (file === "-") {
    await pipeline(body, process.stdout, { end: false, signal }).catch(cutOff);
    return;
  }
  const requireFree = () => {
    if (existsSync(file) && !force)
      throw usage(`${file} already exists.`, "Give another name, or --force to replace it.");
  };
  requireFree();
  const part = besides(file);
  try {
    await pipeline(body, createWriteStream(part, { mode: 0o600, flags: "wx" }), { signal }).catch(cutOff);
    // Another run may have made it meanwhile.
    requireFree();
    renameSync(part, file);
    showValue("savedFile", { file, bytes: statSync(file).size }, () => `Wrote ${safe(file)}.`);
  } finally {
    rmSync(part, { force: true });
  }
}

/** What fetch throws says only that the answer was `terminated`; all else, such as a full disk, names itself. */
function cutOff(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  throw new Failure("The download was cut off before its end.", {
    hint: "No file was written or replaced. Run the command again.",
  });
}
