import type { Answer, Client } from "../../../client/index.ts";
import { signal } from "../../context.ts";
import { Failure } from "../../failure.ts";
import { safe, spin } from "../../terminal.ts";
import { setTimeout as delay } from "node:timers/promises";

/** Waits until a backup is stored and no longer being verified. @throws Failure with the reason */
export async function untilFinished(client: Client, id: string): Promise<Answer<"getBackup">> {
  const spinner = spin("backing up …");
  try {
    for (;;) {
      const backup = await client.call("getBackup", { id }, { signal });
      if (backup.status === "FAILED")
        throw new Failure(`The backup failed: ${safe(backup.error ?? "no reason is known")}`);
      if (backup.status !== "RUNNING") return backup;
      await delay(2000, undefined, { signal });
    }
  } finally {
    spinner.stop();
  }
}
