import { Hono } from "hono";
import type { DeviceStarted } from "../../protocol/api/device.ts";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { AppError } from "../domain/app-error.ts";
import {
  formatDeviceCode,
  formatUserCode,
  lifetimeSeconds,
  pollIntervalSeconds,
  userCodeOf,
} from "../domain/device-codes.ts";
import { sha256Hex } from "../domain/tokens.ts";
import { body, limitBody, query, requireJson } from "../middleware/body.ts";
import { clientAddress } from "../middleware/limit.ts";

/** How a command-line client gets a key (after RFC 8628). No credentials: the codes grant nothing by themselves. */
export const device = new Hono<AppEnv>()
  .post("/device", limitBody, requireJson, body(operations.startDevice.body), async (c) => {
    for (;;) {
      const userCode = formatUserCode(c.var.ctx.random(64));
      const deviceCode = formatDeviceCode(userCode, c.var.ctx.random(32));
      const object = c.env.DEVICE_CODE.get(c.env.DEVICE_CODE.idFromName(userCode));
      if (
        !(await object.start(
          sha256Hex(deviceCode),
          c.req.valid("json").clientName ?? "Command line",
          clientAddress(c),
        ))
      )
        continue;
      return c.json({
        device_code: deviceCode,
        user_code: userCode,
        verification_url: `${configOf(c.env).SITE_URL}/device?code=${userCode}`,
        expires_in: lifetimeSeconds,
        interval: pollIntervalSeconds,
      } satisfies DeviceStarted);
    }
  })
  .get("/device-poll", query(operations.pollDevice.query), async (c) => {
    const { code } = c.req.valid("query");
    const userCode = userCodeOf(code);
    if (!userCode) throw new AppError("not_found");
    const polled = await c.env.DEVICE_CODE.get(c.env.DEVICE_CODE.idFromName(userCode)).poll(sha256Hex(code));
    if (polled === null) throw new AppError("not_found");
    if (typeof polled === "number") throw new AppError("rate_limited", { retryAfterSeconds: polled });
    return c.json(polled);
  });
