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
import type { DeviceApproval, DeviceCodeRpc, DeviceOrigin, DeviceRequest } from "./rpc.ts";

type Code = {
  deviceHash: string;
  clientName: string;
  address: string;
  origin: DeviceOrigin;
  startedAtMs: number;
  state: "pending" | "approved";
  approval: DeviceApproval | null;
  /** A delivery in progress. The record is deleted before the answer is sent, so while it exists nobody has the key. */
  keyId: Id<"key"> | null;
};

/** The maximum number of polls per code and minute. */
const pollWindow = { limit: 60, windowMs: 60_000 };
const againMs = 60_000;

/**
 * One object per user code: pending → approved → delivered, or deleted. Expiry is checked against the clock on every
 * read; the alarm only cleans up. The key is created by the poll that delivers it. If that poll is interrupted, the
 * next poll replaces the key, or it is deleted with the code.
 */
export class DeviceCode extends DurableObject<Env> implements DeviceCodeRpc {
  private isDelivering = false;

  /** false: this code is in use; choose another. */
  async start(
    deviceHash: string,
    clientName: string,
    address: string,
    origin: DeviceOrigin,
  ): Promise<boolean> {
    if (this.live()) return false;
    const code: Code = {
      deviceHash,
      clientName,
      address,
      origin,
      startedAtMs: Date.now(),
      state: "pending",
      approval: null,
      keyId: null,
    };
    this.ctx.storage.kv.put("code", code);
    await this.ctx.storage.setAlarm(Date.now() + lifetimeSeconds * 1000);
    return true;
  }

  /** The data shown to the person who approves; null unless the code is pending. */
  async describe(): Promise<DeviceRequest | null> {
    const code = this.live();
    if (code?.state !== "pending") return null;
    return {
      clientName: code.clientName,
      address: code.address,
      startedAt: new Date(code.startedAtMs).toISOString(),
      origin: code.origin,
    };
  }

  /** false: the code is not pending. */
  async decide(approval: DeviceApproval, approved: boolean): Promise<boolean> {
    const code = this.live();
    if (code?.state !== "pending") return false;
    if (approved) this.ctx.storage.kv.put("code", { ...code, state: "approved", approval } satisfies Code);
    else await this.ctx.storage.deleteAll();
    return true;
  }

  /** null: denied, expired, consumed or unknown; a number: too many polls, retry after this many seconds. */
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
    // Before the first await, so that only one of two polls delivers.
    this.isDelivering = true;
    try {
      const ctx = this.context();
      const keyId = code.keyId ?? ctx.newId("key");
      this.ctx.storage.kv.put("code", { ...code, keyId } satisfies Code);
      const token = await deliverDeviceKey(ctx, code.approval, code, keyId);
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
      // The platform retries an alarm only a few times, and D1 may be down for longer.
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
