import { eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { Domain, DomainCreate } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { domains } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { siteById, siteIdOf } from "../sites/owned.ts";
import { addDomain } from "./add.ts";
import { domainView } from "./view.ts";

/** Answers with the record that proves ownership. */
export async function createDomain(
  ctx: Ctx,
  { id: siteId, ...wanted }: ById & DomainCreate,
): Promise<Domain> {
  const id = siteIdOf(siteId);
  const {
    found: [found],
    rows,
  } = await batch(ctx, {
    found: siteById(ctx, id),
    rows: ctx.db.select({ name: domains.name }).from(domains).where(eq(domains.siteId, id)),
  });
  const site = requireOwned(ctx, found);
  const names = rows.map(({ name }) => name);
  if (names.includes(wanted.domain)) throw conflict("This site has this domain already.");
  return domainView(ctx, site, await addDomain(ctx, site, wanted, names));
}
