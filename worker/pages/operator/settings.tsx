import { SettingsPatch } from "../../../protocol/api/settings.ts";
import { call } from "../../api/call.ts";
import { parsed } from "../../domain/parsed.ts";
import { logoAddress } from "../kit/brand.tsx";
import { Button, Field, Form, TextArea } from "../kit/form.tsx";
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

const saves =
  (part: keyof SettingsPatch, said: string) =>
  async ({ ctx }: Asked, fields: Fields): Promise<Done> => {
    await call(ctx, "patchSettings", parsed(SettingsPatch, { [part]: withNulls(fields) }));
    return { to: path, said };
  };

export const operatorSettings: Screen = {
  path,
  async show({ ctx }) {
    const { brand, seller } = await call(ctx, "getSettings", {});
    return operatorFrame(
      path,
      <div class="halves">
        <Card title="Brand">
          <div class="body">
            <Form id="brand">
              <Field name="name" label="Name" value={brand.name} required maxlength={60} autocomplete="off" />
              {brand.logo !== null && (
                <p>
                  <img class="logo" src={logoAddress(brand.logo)} alt="The logo now" />
                </p>
              )}
              <TextArea
                name="logo"
                label="Logo"
                value={brand.logo ?? ""}
                hint="The text of an SVG without scripts, or a PNG as data:image/png;base64,…; 64 KiB at most."
                rows={4}
                maxlength={64 * 1024}
                mono
              />
              <Field
                name="accent"
                label="Colour of buttons and links"
                value={brand.accent ?? ""}
                hint="Such as #0f766e; dark enough for white text."
                maxlength={7}
                autocomplete="off"
              />
              {links.map(([name, label]) => (
                <Field
                  name={name}
                  label={`${label} (address)`}
                  type="url"
                  value={brand[name] ?? ""}
                  placeholder="https://"
                  maxlength={500}
                  autocomplete="off"
                />
              ))}
              <p class="form-end">
                <Button label="Save brand" kind="primary" />
              </p>
            </Form>
          </div>
        </Card>
        <Card title="Seller on invoices">
          <div class="body">
            <p class="soft">Printed on invoices that are issued from now on.</p>
            <Form id="seller">
              <Field
                name="name"
                label="Name"
                value={seller.name ?? ""}
                maxlength={200}
                autocomplete="organization"
              />
              <TextArea
                name="address"
                label="Address"
                value={seller.address ?? ""}
                hint="As it is printed, at most six lines."
                maxlength={400}
              />
              <Field
                name="vatId"
                label="VAT id"
                value={seller.vatId ?? ""}
                hint="With its country's letters, such as DE123456789."
                maxlength={30}
                autocomplete="off"
              />
              <Field
                name="email"
                label="Email"
                type="email"
                value={seller.email ?? ""}
                maxlength={254}
                autocomplete="off"
              />
              <TextArea
                name="note"
                label="Note"
                value={seller.note ?? ""}
                hint="Below the total, such as bank details or how tax applies."
                maxlength={500}
              />
              <p class="form-end">
                <Button label="Save seller" />
              </p>
            </Form>
          </div>
        </Card>
      </div>,
    );
  },
  forms: {
    brand: saves("brand", "The brand is saved. Every page shows it within 30 seconds."),
    seller: saves("seller", "The seller is saved. The next invoices have it."),
  },
};
