import { and, eq, ne, sql } from "drizzle-orm";
import type { HostCreate, HostCreated } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { hosts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { installCommand } from "../../domain/install-script.ts";
import { mintToken, sha256Hex } from "../../domain/tokens.ts";

/** Creates a host that an agent can enrol as, with a new token or that of a host that is gone; only its hash is stored. */
export async function createHost(ctx: Ctx, input: HostCreate): Promise<HostCreated & { token: string }> {
  const token = input.token ?? mintToken("hst", ctx.random(32));
  const tokenHash = sha256Hex(token);
  const {
    holder: [holder],
    created: [created],
  } = await batch(ctx, {
    holder: ctx.db
      .select({ name: hosts.name })
      .from(hosts)
      .where(and(eq(hosts.tokenHash, tokenHash), ne(hosts.status, "REMOVED"))),
    // The hash is unique, also among removed hosts; an id is the hash of no token.
    released: ctx.db
      .update(hosts)
      .set({ tokenHash: sql`id` })
      .where(
        and(
          eq(hosts.tokenHash, tokenHash),
          eq(hosts.status, "REMOVED"),
          sql`NOT EXISTS (SELECT 1 FROM hosts other WHERE other.name = ${input.name} AND other.status <> 'REMOVED')`,
        ),
      ),
    created: ctx.db
      .insert(hosts)
      .values({
        id: ctx.newId("host"),
        name: input.name,
        region: input.region,
        tokenHash,
        createdAt: ctx.now(),
      })
      .onConflictDoNothing()
      .returning({ id: hosts.id }),
  });
  if (holder)
    throw conflict(
      `The host ${holder.name} has this token. Its agent connects with it; to create another host with it, remove ${holder.name} first.`,
    );
  if (!created) throw conflict(`A host named ${input.name} already exists. Choose another name.`);
  return { id: created.id, token, installCommand: installCommand(ctx.config.SITE_URL, token) };
}
