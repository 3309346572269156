import { DurableObject } from "cloudflare:workers";
import type { DevicePolled } from "../../protocol/api/device.ts";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../compose.ts";
import type { Ctx } from "../ctx.ts";
import { lifetimeSeconds } from "../domain/device-codes.ts";
import { admit } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { deliverDeviceKey } from "../services/device/deliver.ts";
import { withdrawDeviceKey } from "../services/device/withdraw.ts";
import type { DeviceApproval, DeviceCodeRpc, DeviceRequest } from "./rpc.ts";

type Code = {
  deviceHash: string;
  clientName: string;
  address: string;
  startedAtMs: number;
  state: "pending" | "approved";
  approval: DeviceApproval | null;
  /** Of a delivery that has begun. Its answer leaves after this record is gone: where it is still here, nobody has the key. */
  keyId: Id<"key"> | null;
};

/** Most polls of one code in a minute. */
const pollWindow = { limit: 60, windowMs: 60_000 };
const againMs = 60_000;

/**
 * One per user code: pending → approved → delivered, or gone. Whether it has expired is decided by the clock whenever it
 * is read; the alarm only tidies up. The key comes into being in the one poll that delivers it; one that was made and not
 * delivered, as everything ended in between, is replaced by the next poll or goes with the code.
 */
export class DeviceCode extends DurableObject<Env> implements DeviceCodeRpc {
  private isDelivering = false;

  /** false: this code is in use, take another. */
  async start(deviceHash: string, clientName: string, address: string): Promise<boolean> {
    if (this.live()) return false;
    const code: Code = {
      deviceHash,
      clientName,
      address,
      startedAtMs: Date.now(),
      state: "pending",
      approval: null,
      keyId: null,
    };
    this.ctx.storage.kv.put("code", code);
    await this.ctx.storage.setAlarm(Date.now() + lifetimeSeconds * 1000);
    return true;
  }

  /** What the person who approves is shown; null for a code that waits for nobody. */
  async describe(): Promise<DeviceRequest | null> {
    const code = this.live();
    if (code?.state !== "pending") return null;
    return {
      clientName: code.clientName,
      address: code.address,
      startedAt: new Date(code.startedAtMs).toISOString(),
    };
  }

  /** false: nothing waits here (any more). */
  async decide(approval: DeviceApproval, approved: boolean): Promise<boolean> {
    const code = this.live();
    if (code?.state !== "pending") return false;
    if (approved) this.ctx.storage.kv.put("code", { ...code, state: "approved", approval } satisfies Code);
    else await this.ctx.storage.deleteAll();
    return true;
  }

  /** null: denied, expired, consumed or unknown; a number: too many polls, wait so many seconds. */
  async poll(deviceHash: string): Promise<DevicePolled | number | null> {
    const code = this.live();
    if (!code || code.deviceHash !== deviceHash) return null;
    const { admitted, hits, resetMs } = admit(
      this.ctx.storage.kv.get<number[]>("polls") ?? [],
      Date.now(),
      pollWindow,
    );
    if (!admitted) return Math.max(1, Math.ceil(resetMs / 1000));
    this.ctx.storage.kv.put("polls", hits);
    if (code.state === "pending") return { status: "pending" };
    if (this.isDelivering || !code.approval) return null;
    // Before the first await: of two polls, one delivers.
    this.isDelivering = true;
    try {
      const ctx = this.context();
      const keyId = code.keyId ?? ctx.newId("key");
      this.ctx.storage.kv.put("code", { ...code, keyId } satisfies Code);
      const token = await deliverDeviceKey(ctx, code.approval, code.clientName, keyId);
      await this.ctx.storage.deleteAll();
      return token === null ? null : { status: "approved", token };
    } finally {
      this.isDelivering = false;
    }
  }

  override async alarm(): Promise<void> {
    if (this.isDelivering) return this.ctx.storage.setAlarm(Date.now() + againMs);
    const keyId = this.ctx.storage.kv.get<Code>("code")?.keyId;
    try {
      if (keyId) await withdrawDeviceKey(this.context(), keyId);
    } catch (error) {
      // The platform tries an alarm a few times only, and D1 may be away for longer.
      logError({ alarm: "device code" }, error);
      return this.ctx.storage.setAlarm(Date.now() + againMs);
    }
    await this.ctx.storage.deleteAll();
  }

  private context(): Ctx {
    return contextOf(this.env, { type: "system" }, (work) => this.ctx.waitUntil(work));
  }

  private live(): Code | null {
    const code = this.ctx.storage.kv.get<Code>("code");
    return code && Date.now() < code.startedAtMs + lifetimeSeconds * 1000 ? code : null;
  }
}
