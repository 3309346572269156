import { SettingsPatch } from "../../../protocol/api/settings.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { logoAddress } from "../kit/brand.tsx";
import { Check, Field, Form, Submit, TextArea } from "../kit/form.tsx";
import { Card } from "../kit/parts.tsx";
import type { Asked, Done, Fields, Screen } from "../kit/screen.ts";
import { operatorFrame } from "./frame.tsx";

const path = "/operator/settings";

const links = [
  ["termsUrl", "Terms"],
  ["privacyUrl", "Privacy"],
  ["imprintUrl", "Imprint"],
  ["supportUrl", "Support"],
] as const;

/** Every field of a form; an empty one restores the default. */
const withNulls = (fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields.record()).map(([name, value]) => [name, value.trim() === "" ? null : value.trim()]),
  );

/** Tax has a name and a rate, or neither. @throws AppError invalid_request */
function sellerIn(fields: Fields) {
  const { taxName = null, taxPercent = null, ...seller } = withNulls(fields);
  if ((taxName === null) !== (taxPercent === null))
    throw invalid(taxName === null ? "taxName" : "taxPercent", "name and rate go together");
  const percent = Number(taxPercent?.replace(",", "."));
  if (taxPercent !== null && !(percent > 0 && percent <= 100))
    throw invalid("taxPercent", "a number above 0 and up to 100, such as 19 or 7.7");
  return { ...seller, tax: taxName === null ? null : { name: taxName, percent } };
}

const saves =
  (part: "brand" | "seller", said: string, read: (fields: Fields) => object) =>
  async ({ ctx }: Asked, fields: Fields): Promise<Done> => {
    await call(ctx, "patchSettings", parsed(SettingsPatch, { [part]: read(fields) }));
    return { to: path, said };
  };

export const operatorSettings: Screen = {
  path,
  async show({ ctx }) {
    const { brand, seller, signUp } = await call(ctx, "getSettings", {});
    const isFixed = ctx.config.SIGN_UP === "closed";
    return operatorFrame(
      path,
      <div class="halves">
        <div class="stack">
          <Card title="Sign-up" id="sign-up">
            <div class="body">
              {isFixed ? (
                <p>Closed by the configuration (SIGN_UP): nobody can create an account.</p>
              ) : (
                <Form id="sign-up">
                  <Check name="open" label="Anybody can create an account" checked={signUp === "open"} />
                  <p class="hint">
                    Otherwise nobody can, by email or GitHub; existing accounts sign in as before.
                  </p>
                  <Submit label="Save" of="sign-up" />
                </Form>
              )}
            </div>
          </Card>
          <Card title="Seller on invoices">
            <div class="body">
              <p class="soft">Printed on invoices that are issued from now on.</p>
              <Form id="seller">
                <Field
                  name="name"
                  prose
                  label="Name"
                  value={seller.name ?? ""}
                  maxlength={200}
                  autocomplete="organization"
                />
                <TextArea
                  name="address"
                  prose
                  label="Address"
                  value={seller.address ?? ""}
                  hint="As printed, at most six lines."
                  maxlength={400}
                />
                <Field
                  name="vatId"
                  label="VAT id"
                  value={seller.vatId ?? ""}
                  hint="With its country code, such as DE123456789."
                  maxlength={30}
                />
                <Field name="email" label="Email" type="email" value={seller.email ?? ""} maxlength={254} />
                <div class="columns">
                  <Field
                    name="taxName"
                    prose
                    label="Tax"
                    value={seller.tax?.name ?? ""}
                    placeholder="VAT"
                    hint="Its name on invoices. Leave empty for none."
                    maxlength={30}
                  />
                  <Field
                    name="taxPercent"
                    label="Rate in %"
                    value={seller.tax === null ? "" : String(seller.tax.percent)}
                    placeholder="19"
                    hint="Prices include it; what customers pay stays the same."
                    maxlength={6}
                  />
                </div>
                <TextArea
                  name="note"
                  prose
                  label="Note"
                  value={seller.note ?? ""}
                  hint="Below the total, such as bank details or how tax applies."
                  maxlength={500}
                />
                <Submit label="Save seller" />
              </Form>
            </div>
          </Card>
        </div>
        <Card title="Brand">
          <div class="body">
            <Form id="brand">
              <Field
                name="name"
                prose
                label="Name"
                value={brand.name}
                hint="Leave empty for Berth's own."
                maxlength={60}
              />
              {brand.logo !== null && (
                <p>
                  <img class="logo" src={logoAddress(brand.logo)} alt="Current logo" />
                </p>
              )}
              <TextArea
                name="logo"
                label="Logo"
                value={brand.logo ?? ""}
                hint="The text of an SVG without scripts, or a PNG as data:image/png;base64,…; 64 KiB at most."
                rows={4}
                maxlength={64 * 1024}
              />
              <Field
                name="accent"
                label="Colour of buttons and links"
                value={brand.accent ?? ""}
                hint="Such as #0f766e; dark enough for white text."
                maxlength={7}
              />
              {links.map(([name, label]) => (
                <Field
                  name={name}
                  label={`${label} (address)`}
                  type="url"
                  value={brand[name] ?? ""}
                  placeholder="https://"
                  maxlength={500}
                />
              ))}
              <Submit label="Save brand" kind="primary" />
            </Form>
          </div>
        </Card>
      </div>,
    );
  },
  forms: {
    async "sign-up"({ ctx }, fields) {
      const signUp = fields.text("open") === "true" ? "open" : "closed";
      await call(ctx, "patchSettings", { signUp });
      return {
        to: `${path}#sign-up`,
        said:
          signUp === "open"
            ? "Sign-up is open: anybody can create an account."
            : "Sign-up is closed: nobody can create an account.",
      };
    },
    brand: saves("brand", "The brand is saved. Every page shows it within 30 seconds.", withNulls),
    seller: saves("seller", "The seller is saved. New invoices will show it.", sellerIn),
  },
};
