import type { HostCreate, HostCreated } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { installCommand } from "../../domain/install-script.ts";
import { mintToken, sha256Hex } from "../../domain/tokens.ts";
import { requireOperator } from "../require-operator.ts";

/** A host that an agent may enrol as; the token is kept only as a hash. */
export async function createHost(ctx: Ctx, input: HostCreate): Promise<HostCreated & { token: string }> {
  requireOperator(ctx);
  const token = mintToken("hst", ctx.random(32));
  const [created] = await ctx.db
    .insert(hosts)
    .values({
      id: ctx.newId("host"),
      name: input.name,
      region: input.region,
      tokenHash: sha256Hex(token),
      createdAt: ctx.now(),
    })
    .onConflictDoNothing()
    .returning({ id: hosts.id });
  if (!created) throw conflict(`A host named ${input.name} exists already: choose another name.`);
  return { id: created.id, token, installCommand: installCommand(ctx.config.SITE_URL, token) };
}
