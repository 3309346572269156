import * as z from "zod";
import { contrastWithWhite } from "../contrast.ts";
import { signUpStates } from "../states.ts";
import { text, Timestamp } from "./common.ts";

const line = (most: number) =>
  text
    .trim()
    .min(1)
    .max(most)
    .regex(/^[^\r\n]*$/, "one line");
/** The postal address as it is printed. */
const Address = text
  .trim()
  .min(1)
  .max(400)
  .refine((value) => value.split("\n").length <= 6, "at most six lines");
/** With the prefix of the country, such as DE123456789 (ISO 3166-1 and up to 13 characters more). */
const VatId = text
  .transform((value) => value.replaceAll(/[\s.-]/g, "").toUpperCase())
  .pipe(
    z.string().regex(/^[A-Z]{2}[A-Z0-9]{2,13}$/, "a VAT id with its country's letters, such as DE123456789"),
  )
  .meta({
    override({ jsonSchema }: { jsonSchema: object }) {
      Object.assign(jsonSchema, { maxLength: 30 });
    },
  });
const Country = z.string().regex(/^[A-Z]{2}$/, "a country's two letters, such as DE");
const Link = text
  .max(500)
  .pipe(z.url({ protocol: /^https$/, error: "an address such as https://example.com/terms" }));

/** An SVG without scripts, references or styles from elsewhere; or a PNG as a data URL. Pages show it as an image. */
const Logo = text
  .max(64 * 1024)
  .refine(
    (value) =>
      /^data:image\/png;base64,[A-Za-z0-9+/]+={0,2}$/.test(value) || /^<svg[\s>][^]*<\/svg>\s*$/.test(value),
    "an SVG that begins with <svg, or a PNG as data:image/png;base64,…",
  )
  .refine(
    (value) =>
      !/<script|<foreignObject|<iframe|<!|<\?|\son\w+\s*=|javascript:|@import|(?:href|src)\s*=(?!\s*["']?(?:#|data:image\/png))|url\((?!\s*["']?#)/i.test(
        value,
      ) || value.startsWith("data:"),
    "must not contain scripts or refer to anything outside it",
  );
/** White text is read on it. */
const Accent = z
  .string()
  .regex(/^#[0-9a-f]{6}$/i, "a colour such as #0f766e")
  .refine(
    (value) => contrastWithWhite(value) >= 4.5,
    "too light for white text: its contrast must be at least 4.5:1",
  );

const brand = {
  name: line(60),
  logo: Logo.nullable().describe("An SVG, or a PNG as a data URL; 64 KiB at most."),
  accent: Accent.nullable().describe("The colour of buttons and links, dark enough for white text."),
  termsUrl: Link.nullable(),
  privacyUrl: Link.nullable(),
  imprintUrl: Link.nullable(),
  supportUrl: Link.nullable(),
};
/** As it is printed, and a rate with at most two decimals. */
const Tax = z.strictObject({
  name: line(30),
  percent: z
    .number()
    .gt(0)
    .max(100)
    .refine((value) => Math.abs(value * 100 - Math.round(value * 100)) < 1e-6, "at most two decimals"),
});

/** What invoices say of who sells. */
const seller = {
  name: line(200).nullable(),
  address: Address.nullable(),
  vatId: VatId.nullable(),
  email: z.email().max(254).nullable(),
  tax: Tax.nullable().describe("Prices include it, and invoices show its share. null: no tax is shown."),
  note: text
    .trim()
    .min(1)
    .max(500)
    .nullable()
    .describe("Printed below the total, such as bank details or how tax applies."),
};

export const Brand = z.object(brand).meta({ id: "Brand" });
export type Brand = z.infer<typeof Brand>;
export const Seller = z.object(seller).meta({ id: "Seller" });
export type Seller = z.infer<typeof Seller>;

const SignUp = z
  .enum(signUpStates)
  .describe("closed: nobody can create an account; existing ones sign in as before.");

export const Settings = z
  .object({
    brand: Brand,
    seller: Seller,
    signUp: SignUp.describe("closed also where the configuration says so (SIGN_UP), whatever is set here."),
    updatedAt: Timestamp.nullable().describe("null: the defaults."),
  })
  .meta({ id: "Settings" });
export type Settings = z.infer<typeof Settings>;

export const SettingsPatch = z
  .strictObject({
    brand: z
      .strictObject({ ...brand, name: brand.name.nullable() })
      .partial()
      .optional(),
    seller: z.strictObject(seller).partial().optional(),
    signUp: SignUp.optional(),
  })
  .refine(
    ({ brand: first = {}, seller: second = {}, signUp }) =>
      signUp !== undefined || Object.keys({ ...first, ...second }).length > 0,
    "name at least one field to change",
  )
  .meta({ id: "SettingsPatch" });
export type SettingsPatch = z.infer<typeof SettingsPatch>;

/** What invoices say of who buys. */
const buyer = {
  name: line(200).nullable().describe("A person or company; null: none on invoices."),
  address: Address.nullable(),
  country: Country.nullable(),
  vatId: VatId.nullable(),
};
export const BillingDetails = z.object(buyer).meta({ id: "BillingDetails" });
export type BillingDetails = z.infer<typeof BillingDetails>;

export const BillingDetailsPatch = z
  .strictObject(buyer)
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, "name at least one field to change")
  .meta({ id: "BillingDetailsPatch" });
export type BillingDetailsPatch = z.infer<typeof BillingDetailsPatch>;

/** Seller and buyer as they were when an invoice was issued. */
export const InvoiceParties = z.object({
  brandName: z.string(),
  seller: Seller.nullable(),
  buyer: BillingDetails.nullable(),
});
export type InvoiceParties = z.infer<typeof InvoiceParties>;
