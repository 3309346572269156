import type { ById } from "../../../protocol/api/common.ts";
import type { Domain, DomainCreate } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { addDomain } from "./add.ts";
import { siteWithDomains } from "./owned.ts";
import { domainView } from "./view.ts";

/** Answers with the record that proves ownership. */
export async function createDomain(ctx: Ctx, { id, ...wanted }: ById & DomainCreate): Promise<Domain> {
  const { site, rows } = await siteWithDomains(ctx, id);
  if (rows.some(({ name }) => name === wanted.domain)) throw conflict("This site already has this domain.");
  return domainView(ctx, site, await addDomain(ctx, site, wanted, rows));
}
