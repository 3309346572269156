import { DurableObject, waitUntil } from "cloudflare:workers";
import { contextOf } from "../compose.ts";
import { runTasks } from "../cron.ts";
import { Ticks } from "../domain/ticks.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";

let ticks: Ticks | undefined;
const ticksOf = ({ TICK_MS }: Cloudflare.Env): Ticks => (ticks ??= new Ticks(Number(TICK_MS)));

/** What wrangler.toml's `crons` are on Cloudflare: runs the tasks just after each full minute, when schedules are due. */
export class Clock extends DurableObject {
  /** @param nowMs by the caller's clock: an object's own never goes back, so one that is ahead has to begin anew. */
  async start(nowMs: number): Promise<void> {
    const ticks = ticksOf(this.env);
    if (Date.now() > nowMs + Number(this.env.TICK_MS)) this.ctx.abort("The machine's clock was set back");
    await this.ctx.storage.setAlarm(ticks.next(nowMs));
  }

  override async alarm(): Promise<void> {
    await this.start(Date.now());
    if (!ticksOf(this.env).mayRun())
      return logError(
        { clock: "tick" },
        new Error("The machine's clock went forward by more than a day. The tasks wait for ten minutes"),
      );
    // Not awaited: none of the next minute's tasks waits for one of this minute's. Each logs its own failure.
    const ctx = contextOf(this.env as unknown as Env, { type: "system" }, waitUntil);
    waitUntil(Promise.allSettled(runTasks(ctx)));
  }
}

let isStarting = false;

/**
 * With each request to the Worker, of which the supervisor sends one every few seconds. An alarm waits for its time by the
 * machine's clock: after that was set back by a year, it would wait for a year.
 */
export function startClock(env: Cloudflare.Env): void {
  if (isStarting || env.TICK_MS === undefined || !ticksOf(env).isLost(Date.now())) return;
  isStarting = true;
  waitUntil(
    env.CLOCK.get(env.CLOCK.idFromName("berth"))
      .start(Date.now())
      .catch((error: unknown) => logError({ clock: "start" }, error))
      .finally(() => (isStarting = false)),
  );
}
