import { isNotNull } from "drizzle-orm";
import type { Certificate } from "../../../protocol/agent/messages.ts";
import type { Ctx } from "../../ctx.ts";
import { certificates } from "../../db/schema.ts";

/** The certificates that hosts serve, with their keys. */
export async function issuedCertificates(ctx: Ctx): Promise<Certificate[]> {
  const rows = await ctx.db.select().from(certificates).where(isNotNull(certificates.chain));
  return rows.flatMap(({ id: name, chain, keySealed, notAfter }) =>
    chain !== null && keySealed !== null && notAfter !== null
      ? {
          name,
          chain,
          key: ctx.secrets.open(keySealed, `certificates.key:${name}`),
          notAfter: notAfter.toISOString(),
        }
      : [],
  );
}
