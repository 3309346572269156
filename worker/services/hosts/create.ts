import type { HostCreate, HostCreated } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { hosts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { installCommand } from "../../domain/install-script.ts";
import { mintToken, sha256Hex } from "../../domain/tokens.ts";

/** Creates a host that an agent can enrol as; only the hash of the token is stored. */
export async function createHost(ctx: Ctx, input: HostCreate): Promise<HostCreated & { token: string }> {
  const token = mintToken("hst", ctx.random(32));
  const {
    created: [created],
  } = await batch(ctx, {
    created: ctx.db
      .insert(hosts)
      .values({
        id: ctx.newId("host"),
        name: input.name,
        region: input.region,
        tokenHash: sha256Hex(token),
        createdAt: ctx.now(),
      })
      .onConflictDoNothing()
      .returning({ id: hosts.id }),
  });
  if (!created) throw conflict(`A host named ${input.name} already exists. Choose another name.`);
  return { id: created.id, token, installCommand: installCommand(ctx.config.SITE_URL, token) };
}
