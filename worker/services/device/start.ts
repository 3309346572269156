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
export const startDevice = (ctx: Ctx, { clientName }: DeviceStart): Promise<DeviceStarted> =>
  startFor(ctx, { name: clientName ?? "Command line", origin: "device" }, sha256Hex);

/** The same for a registered client of MCP: only it can collect the key, which is good for `/mcp` alone. */
export const startMcpDevice = (ctx: Ctx, clientId: string, name: string): Promise<DeviceStarted> =>
  startFor(ctx, { name, origin: "mcp" }, (code) => hashFor(clientId, code));

/** What is stored of a code that was given to this client. */
export const hashFor = (clientId: string, deviceCode: string): string =>
  sha256Hex(`${deviceCode} ${clientId}`);

async function startFor(
  ctx: Ctx,
  { name, origin }: { name: string; origin: "device" | "mcp" },
  hash: (deviceCode: string) => string,
): Promise<DeviceStarted> {
  const address = ctx.actor.type === "link" ? ctx.actor.address : undefined;
  for (;;) {
    const userCode = formatUserCode(ctx.random(64));
    const deviceCode = formatDeviceCode(userCode, ctx.random(32));
    const client = { name, origin, address: address ?? "unknown" };
    if (!(await ctx.devices.start(userCode, hash(deviceCode), client))) continue;
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_url: `${ctx.config.SITE_URL}/device?code=${userCode}`,
      expires_in: lifetimeSeconds,
      interval: pollIntervalSeconds,
    };
  }
}
