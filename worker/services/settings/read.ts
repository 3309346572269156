import { eq } from "drizzle-orm";
import type { Brand, Seller, Settings } from "../../../protocol/api/settings.ts";
import type { Ctx } from "../../ctx.ts";
import { installationSettings } from "../../db/schema.ts";

export const defaultBrand: Brand = {
  name: "Berth",
  logo: null,
  accent: null,
  termsUrl: null,
  privacyUrl: null,
  imprintUrl: null,
  supportUrl: null,
};
export const defaultSeller: Seller = {
  name: null,
  address: null,
  vatId: null,
  email: null,
  tax: null,
  note: null,
};

/** There is one row, or none. */
export const onlyRow = 1;

/** The settings of this installation, for operators. */
export async function getSettings(ctx: Ctx): Promise<Settings> {
  const [row] = await ctx.db.select().from(installationSettings).where(eq(installationSettings.id, onlyRow));
  return settingsOf(row);
}

export const settingsOf = (row: typeof installationSettings.$inferSelect | undefined): Settings => ({
  brand: { ...defaultBrand, ...row?.brand },
  seller: { ...defaultSeller, ...row?.seller },
  updatedAt: row?.updatedAt.toISOString() ?? null,
});

const keptMs = 30_000;
const kept = new WeakMap<object, { brand: Brand; untilMs: number }>();

/** The public part, for pages: name, logo, colours and links. Read from D1 at most every 30 seconds per isolate. */
export async function brandOf(ctx: Ctx): Promise<Brand> {
  const now = ctx.now().getTime();
  const known = kept.get(ctx.config);
  if (known && known.untilMs > now) return known.brand;
  const { brand } = await getSettings(ctx);
  kept.set(ctx.config, { brand, untilMs: now + keptMs });
  return brand;
}

/** After a change, at least this isolate shows it at once. */
export const forgetBrand = (ctx: Ctx): boolean => kept.delete(ctx.config);
