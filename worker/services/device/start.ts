import type { DeviceStart, DeviceStarted } from "../../../protocol/api/device.ts";
import type { Ctx } from "../../ctx.ts";
import {
  formatDeviceCode,
  formatUserCode,
  lifetimeSeconds,
  pollIntervalSeconds,
} from "../../domain/device-codes.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** Creates a pair of codes that grants nothing until a person approves it (after RFC 8628). */
export async function startDevice(ctx: Ctx, { clientName }: DeviceStart): Promise<DeviceStarted> {
  const address = ctx.actor.type === "link" ? ctx.actor.address : undefined;
  for (;;) {
    const userCode = formatUserCode(ctx.random(64));
    const deviceCode = formatDeviceCode(userCode, ctx.random(32));
    const client = { name: clientName ?? "Command line", address: address ?? "unknown" };
    if (!(await ctx.devices.start(userCode, sha256Hex(deviceCode), client))) continue;
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_url: `${ctx.config.SITE_URL}/device?code=${userCode}`,
      expires_in: lifetimeSeconds,
      interval: pollIntervalSeconds,
    };
  }
}
