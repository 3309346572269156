import { DurableObject, waitUntil } from "cloudflare:workers";
import { contextOf } from "../compose.ts";
import { runTasks } from "../cron.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";

/** What wrangler.toml's `crons` are on Cloudflare: runs the tasks just after each full minute, when schedules are due. */
export class Clock extends DurableObject {
  async start(): Promise<void> {
    const tickMs = Number(this.env.TICK_MS);
    await this.ctx.storage.setAlarm((Math.floor(Date.now() / tickMs) + 1) * tickMs + 50);
  }

  override async alarm(): Promise<void> {
    await this.start();
    // Not awaited: none of the next minute's tasks waits for one of this minute's. Each logs its own failure.
    const ctx = contextOf(this.env as unknown as Env, { type: "system" }, waitUntil);
    waitUntil(Promise.allSettled(runTasks(ctx)));
  }
}

let isStarted = false;

/** With the first request to the Worker. An alarm is kept over restarts; starting anew sets it right after a change. */
export function startClock({ CLOCK, TICK_MS }: Cloudflare.Env): void {
  if (isStarted || TICK_MS === undefined) return;
  isStarted = true;
  waitUntil(
    CLOCK.get(CLOCK.idFromName("berth"))
      .start()
      .catch((error: unknown) => {
        isStarted = false;
        logError({ clock: "start" }, error);
      }),
  );
}
