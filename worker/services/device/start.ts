import type { DeviceStart, DeviceStarted } from "../../../protocol/api/device.ts";
import type { Ctx } from "../../context.ts";
import {
  formatDeviceCode,
  formatUserCode,
  lifetimeSeconds,
  pollIntervalSeconds,
} from "../../domain/device-codes.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** A pair of codes that waits for a person (after RFC 8628): by themselves they grant nothing. */
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
