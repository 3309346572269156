import { Hono, type Context } from "hono";
import { leaseHeaders, partBytes, partHashHeader, UploadComplete } from "../../protocol/agent/backups.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError, invalid } from "../domain/app-error.ts";
import { bearerOf } from "../middleware/authenticate.ts";
import { actAs } from "../middleware/context.ts";
import { countedAddress, guessWithin } from "../middleware/limit.ts";
import type { LeaseClaim } from "../services/backups/leased.ts";
import { readManifest, readStored } from "../services/backups/read-stored.ts";
import { beginUpload, completeUpload, storePart } from "../services/backups/upload.ts";
import { authenticateHost } from "../services/hosts/authenticate.ts";

function authenticated(c: Context<AppEnv>) {
  const token = bearerOf(c);
  return guessWithin(c, [["address", countedAddress(c)]], () => authenticateHost(c.var.ctx, token));
}

/** The host and the claimed lease; the services check that the lease is current and about this backup. */
const claimOf = async (c: Context<AppEnv>): Promise<LeaseClaim> => ({
  hostId: await authenticated(c),
  jobId: c.req.header(leaseHeaders.job) ?? "",
  attempt: Number(c.req.header(leaseHeaders.attempt)),
});

/** Of the end of an upload: that of a database with 100,000 tables has 20 MiB. */
const maxEndBytes = 32 * 1024 * 1024;

/** Before a body is read, which a host may send without end. @throws AppError payload_too_large, also for one of unknown length */
function demandLength(c: Context<AppEnv>, maxBytes: number): void {
  if (Number(c.req.header("Content-Length") ?? Infinity) > maxBytes) throw new AppError("payload_too_large");
}

/**
 * The endpoint for agents, whose token identifies the host. Backups are transferred in parts, outside the WebSocket.
 */
export const agent = new Hono<AppEnv>()
  .use(actAs("link"))
  .get("/connect", async (c) => {
    const hostId = await authenticated(c);
    const link = c.env.HOST_LINK.get(c.env.HOST_LINK.idFromName(hostId));
    const headers = new Headers(c.req.raw.headers);
    headers.delete("Authorization");
    headers.set("X-Berth-Host", hostId);
    return link.fetch(new Request(c.req.raw, { headers }));
  })
  .post("/backups/:id/upload", async (c) =>
    c.json(await beginUpload(c.var.ctx, c.req.param("id"), await claimOf(c))),
  )
  .put("/backups/:id/parts/:part", async (c) => {
    const claim = await claimOf(c);
    demandLength(c, partBytes);
    const part = {
      number: Number(c.req.param("part")),
      sha256: c.req.header(partHashHeader) ?? "",
      bytes: await c.req.arrayBuffer(),
    };
    return c.json(await storePart(c.var.ctx, c.req.param("id"), claim, part));
  })
  .post("/backups/:id/complete", async (c) => {
    const claim = await claimOf(c);
    demandLength(c, maxEndBytes);
    const done = UploadComplete.safeParse(await c.req.json().catch(() => null));
    if (!done.success) throw invalid("", "not a valid end of an upload");
    await completeUpload(c.var.ctx, c.req.param("id"), claim, done.data);
    return c.json({});
  })
  .get("/backups/:id/data", async (c) =>
    readStored(c.var.ctx, c.req.param("id"), await claimOf(c), c.req.header("Range")),
  )
  .get("/backups/:id/manifest", async (c) => readManifest(c.var.ctx, c.req.param("id"), await claimOf(c)));
