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
  return settingsOf(ctx, row);
}

export const settingsOf = (
  ctx: Ctx,
  row: typeof installationSettings.$inferSelect | undefined,
): Settings => ({
  brand: { ...defaultBrand, ...row?.brand },
  seller: { ...defaultSeller, ...row?.seller },
  signUp: ctx.config.SIGN_UP === "closed" ? "closed" : (row?.signUp ?? "open"),
  updatedAt: row?.updatedAt.toISOString() ?? null,
});

/** Whether an account may be created at this moment. */
export const takesSignUps = async (ctx: Ctx): Promise<boolean> => (await getSettings(ctx)).signUp === "open";

const keptMs = 30_000;
type Public = Pick<Settings, "brand" | "signUp">;
const kept = new WeakMap<object, Public & { untilMs: number }>();

/**
 * The public part, for pages: name, logo, colours and links, and whether they offer to sign up. Read from D1 at most every 30 seconds
 * per isolate.
 */
export async function publicSettings(ctx: Ctx): Promise<Public> {
  const now = ctx.now().getTime();
  const known = kept.get(ctx.config);
  if (known && known.untilMs > now) return known;
  const { brand, signUp } = await getSettings(ctx);
  kept.set(ctx.config, { brand, signUp, untilMs: now + keptMs });
  return { brand, signUp };
}

/** After a change, at least this isolate shows it at once. */
export const forgetPublic = (ctx: Ctx): boolean => kept.delete(ctx.config);
