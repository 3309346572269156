import { DurableObject } from "cloudflare:workers";
import { Hono } from "hono";

/** Hono and nothing else, and the bare minimum that answers the same request: one Durable Object call and one indexed D1 read. */
export class Bare extends DurableObject {
  private count = 0;
  async take(): Promise<number> {
    return ++this.count;
  }
}

type Env = { DB: D1Database; BARE: DurableObjectNamespace<Bare> };

export default new Hono<{ Bindings: Env }>()
  .get("/hello", (c) => c.json({ hello: "world" }))
  .get("/sites/:id", async (c) => {
    const key = c.req.header("Authorization") ?? "";
    const count = await c.env.BARE.get(c.env.BARE.idFromName(key)).take();
    const site = await c.env.DB.prepare("SELECT * FROM sites WHERE id = ?").bind(c.req.param("id")).first();
    return c.json({ count, site });
  });
