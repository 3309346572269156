import { setTimeout as delay } from "node:timers/promises";
import { inventoryMinutes, type Verdicts } from "../../protocol/agent/inventory.ts";
import type { FromAgent } from "../../protocol/agent/messages.ts";
import type { Host } from "../host.ts";
import { log } from "../log.ts";
import { carryOut } from "./carry-out.ts";
import { gather, inPages } from "./gather.ts";

/** So long whoever ended a container may take for what it is about. */
const settleMs = 5000;

/** Says what this host has: to a control plane that asks for it, after each welcome, every ten minutes, and when something has gone. */
export class InventoryReporter {
  private readonly means: {
    host: Host;
    isWorkingOn: (id: string) => boolean;
    /** Databases that wait for their owner. */
    out: () => Promise<ReadonlySet<string>>;
  };
  private send: ((message: FromAgent) => void) | undefined;
  /** The control plane's clock when it said so, and this machine's that never jumps. */
  private clock = { saidMs: 0, atMs: 0 };
  private resend: NodeJS.Timeout | undefined;
  private isDoubted = false;
  private last: Promise<void> = Promise.resolve();

  constructor(means: InventoryReporter["means"]) {
    this.means = means;
  }

  /** @param now as the welcome says; none: this control plane does not compare */
  connected(send: (message: FromAgent) => void, now: string | undefined): void {
    if (now === undefined) return;
    this.clock = { saidMs: Date.parse(now), atMs: performance.now() };
    this.send = send;
    this.report();
    this.resend = setInterval(() => this.report(), inventoryMinutes * 60_000).unref();
  }

  disconnected(): void {
    this.send = undefined;
    clearInterval(this.resend);
  }

  /** Something that may be meant to run has ended. */
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
      // Before anything is looked at. The way here took some time: what the control plane did meanwhile is later than this.
      const asOf = new Date(this.clock.saidMs + performance.now() - this.clock.atMs).toISOString();
      const held = await gather(this.means.host, await this.means.out());
      if (send === this.send) for (const page of inPages(held, asOf)) send(page);
    });
  }

  private inTurn(work: () => Promise<void>): void {
    this.last = this.last
      .then(work)
      .catch((error: unknown) =>
        log("error", "What this host has was not compared with the record", { error }),
      );
  }
}
