import { setTimeout as delay } from "node:timers/promises";
import { inventoryMinutes, type Verdicts } from "../../protocol/agent/inventory.ts";
import type { FromAgent } from "../../protocol/agent/messages.ts";
import type { Host } from "../host.ts";
import { log } from "../log.ts";
import { carryOut } from "./carry-out.ts";
import { gather, inPages } from "./gather.ts";

/** Grace period for the component that ended a container to finish. */
const settleMs = 5000;

/**
 * Reports this host's inventory to the control plane: after each welcome, every ten minutes, and when
 * something has disappeared.
 */
export class InventoryReporter {
  private readonly means: {
    host: Host;
    isWorkingOn: (id: string) => boolean;
    /** Databases that are down until their owner starts them. */
    out: () => Promise<ReadonlySet<string>>;
  };
  private send: ((message: FromAgent) => void) | undefined;
  /** The control plane's time at the welcome, and this machine's monotonic clock at that moment. */
  private clock: { saidMs: number; atMs: number } | undefined;
  private resend: NodeJS.Timeout | undefined;
  private isDoubted = false;
  private last: Promise<void> = Promise.resolve();

  constructor(means: InventoryReporter["means"]) {
    this.means = means;
  }

  /** @param now the control plane's time from the welcome */
  connected(send: (message: FromAgent) => void, now: string): void {
    this.clock = { saidMs: Date.parse(now), atMs: performance.now() };
    this.send = send;
    this.report();
    this.resend = setInterval(() => this.report(), inventoryMinutes * 60_000).unref();
  }

  /** The control plane's time, whatever this machine's clock says; null: it has not said it yet. */
  serviceTimeMs(): number | null {
    return this.clock ? this.clock.saidMs + performance.now() - this.clock.atMs : null;
  }

  disconnected(): void {
    this.send = undefined;
    clearInterval(this.resend);
  }

  /** Called when something that may be meant to run has ended. */
  doubt(): void {
    if (this.isDoubted) return;
    this.isDoubted = true;
    void delay(settleMs, undefined, { ref: false }).then(() => {
      this.isDoubted = false;
      this.report();
    });
  }

  receive(verdicts: Verdicts): void {
    const { host, isWorkingOn } = this.means;
    this.inTurn(() => carryOut(host, verdicts, isWorkingOn));
  }

  private report(): void {
    this.inTurn(async () => {
      const { send } = this;
      if (!send) return;
      // Taken before the inspection. It lags behind the control plane's clock by the network delay, so changes made
      // meanwhile count as later.
      const asOf = new Date(this.serviceTimeMs() ?? 0).toISOString();
      const held = await gather(this.means.host, await this.means.out());
      if (send === this.send) for (const page of inPages(held, asOf)) send(page);
    });
  }

  private inTurn(work: () => Promise<void>): void {
    this.last = this.last
      .then(work)
      .catch((error: unknown) => log("error", "The inventory was not reported", { error }));
  }
}
