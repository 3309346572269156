import { BillingDetailsPatch } from "../../../protocol/api/settings.ts";
import { call } from "../../api/call.ts";
import { Field, Form, Submit, TextArea } from "../kit/form.tsx";
import { Card, Heading } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";

export const billingDetails: Screen = {
  path: "/billing/details",
  async show({ ctx }) {
    const { name, address, country, vatId } = await call(ctx, "getBillingDetails", {});
    return {
      title: "Billing details",
      section: "billing",
      crumbs: [{ label: "Billing", href: "/billing" }],
      body: (
        <>
          <Heading
            title="Billing details"
            below="How you appear on invoices. Existing invoices do not change."
          />
          <Card>
            <div class="body">
              <Form id="details">
                <Field
                  name="name"
                  prose
                  label="Name"
                  value={name ?? ""}
                  hint="A person or a company. Leave empty to name nobody."
                  maxlength={200}
                  autocomplete="organization"
                />
                <TextArea
                  name="address"
                  prose
                  label="Address"
                  value={address ?? ""}
                  hint="As printed, at most six lines."
                  rows={4}
                  maxlength={400}
                  autocomplete="street-address"
                />
                <Field
                  name="country"
                  prose
                  label="Country"
                  value={country ?? ""}
                  hint="Its two-letter code, such as DE."
                  maxlength={2}
                  autocomplete="country"
                />
                <Field
                  name="vatId"
                  label="VAT id"
                  value={vatId ?? ""}
                  hint="With its country code, such as DE123456789."
                  maxlength={30}
                />
                <Submit label="Save" kind="primary" />
              </Form>
            </div>
          </Card>
        </>
      ),
    };
  },
  forms: {
    async details({ ctx }, fields) {
      await call(ctx, "patchBillingDetails", fields.readWithNulls(BillingDetailsPatch));
      return { to: "/billing/details", said: "The details are saved. Your next invoice will show them." };
    },
  },
};
