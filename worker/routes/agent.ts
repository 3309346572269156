import { Hono } from "hono";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { actAs } from "../middleware/context.ts";
import { authenticateHost } from "../services/hosts/authenticate.ts";

/** Where a host's agent dials in: its token decides which host it is. */
export const agent = new Hono<AppEnv>().get("/connect", actAs("link"), async (c) => {
  const token = /^Bearer (\S+)$/i.exec(c.req.header("Authorization") ?? "")?.[1];
  if (!token) throw new AppError("unauthorized");
  const hostId = await authenticateHost(c.var.ctx, token);
  const link = c.env.HOST_LINK.get(c.env.HOST_LINK.idFromName(hostId));
  const headers = new Headers(c.req.raw.headers);
  headers.delete("Authorization");
  headers.set("X-Berth-Host", hostId);
  return link.fetch(new Request(c.req.raw, { headers }));
});
