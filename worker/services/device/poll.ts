import type { DevicePolled, DevicePollQuery } from "../../../protocol/api/device.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { userCodeOf } from "../../domain/device-codes.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** @throws AppError not_found for a denied, expired, consumed or unknown code; rate_limited */
export async function pollDevice(ctx: Ctx, { code }: DevicePollQuery): Promise<DevicePolled> {
  const userCode = userCodeOf(code);
  const polled = userCode === null ? null : await ctx.devices.poll(userCode, sha256Hex(code));
  if (polled === null) throw new AppError("not_found");
  if (typeof polled === "number") throw new AppError("rate_limited", { retryAfterSeconds: polled });
  return polled;
}
