import { eq, sql } from "drizzle-orm";
import type { Settings, SettingsPatch } from "../../../protocol/api/settings.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { installationSettings } from "../../db/schema.ts";
import { forgetPublic, onlyRow, settingsOf } from "./read.ts";

/** Changes the fields that are named; concurrent changes of others stay. Invoices that exist stay as they are. */
export async function changeSettings(
  ctx: Ctx,
  { brand = {}, seller = {}, signUp }: SettingsPatch,
): Promise<Settings> {
  const now = ctx.now().getTime();
  const {
    changed: [changed],
  } = await batch(ctx, {
    write: ctx.statement(sql`
      INSERT INTO installation_settings (id, brand, seller, sign_up, updated_at)
      VALUES (${onlyRow}, json_patch('{}', ${JSON.stringify(brand)}), json_patch('{}', ${JSON.stringify(seller)}), ${signUp ?? null}, ${now})
      ON CONFLICT (id) DO UPDATE SET brand = ${merged("brand", brand)}, seller = ${merged("seller", seller)},
        sign_up = coalesce(excluded.sign_up, sign_up), updated_at = ${now}`),
    changed: ctx.db.select().from(installationSettings).where(eq(installationSettings.id, onlyRow)),
  });
  forgetPublic(ctx);
  return settingsOf(ctx, changed);
}

/** A field that is null is removed (RFC 7396), which is its default. */
const merged = (column: "brand" | "seller", patch: object) =>
  sql`json_patch(${sql.raw(column)}, ${JSON.stringify(patch)})`;
