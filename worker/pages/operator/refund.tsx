import { InvoiceRefund, type RefundPreview } from "../../../protocol/api/invoices.ts";
import { call } from "../../api/call.ts";
import { parsed } from "../../domain/parsed.ts";
import { Button, Check, Form } from "../kit/form.tsx";
import { Callout, Card, Day } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { money } from "../money.ts";
import { operatorFrame } from "./frame.tsx";

const Consequences = ({ preview }: { preview: RefundPreview }) => {
  const { credits, term } = preview;
  return (
    <ul>
      <li>
        The payer gets <strong>{money(preview.amountCents, preview.currency)}</strong> back, the full amount
        paid. Banks take up to ten days.
      </li>
      {credits.purchased > 0 && (
        <li>
          {credits.purchased - credits.missing} of the {credits.purchased} bought credits are taken back.
          {credits.missing > 0 && (
            <strong> {credits.missing} are spent or held and cannot be: the refund is flagged.</strong>
          )}
        </li>
      )}
      {term ? (
        <li>
          The paid term ends on <Day at={term.endsAt} /> instead of <Day at={term.paidUntil} />. Nothing is
          stopped immediately: a renewal is issued, with the usual time to pay it.
        </li>
      ) : (
        credits.purchased === 0 && <li>No paid term ends earlier, and no plan changes.</li>
      )}
      <li>It cannot be undone.</li>
    </ul>
  );
};

/** What a refund does, before it is asked for. */
export const operatorRefund: Screen = {
  path: "/operator/money/:id/refund",
  async show({ ctx, param }) {
    const id = param("id");
    const preview = await call(ctx, "previewRefund", { id });
    return operatorFrame(
      "/operator/money",
      <Card title="Refund an invoice">
        <div class="body">
          <p class="soft small">
            <code>{id}</code>
          </p>
          {preview.refusal === null ? (
            <>
              <Consequences preview={preview} />
              <Form id="refund">
                {preview.credits.missing > 0 && (
                  <Check name="force" label="Refund it anyway, and lose the credits that are spent" />
                )}
                <p class="form-end">
                  <Button
                    label={`Refund ${money(preview.amountCents, preview.currency)}`}
                    kind="danger primary"
                  />{" "}
                  <a href="/operator/money">Back to the invoices</a>
                </p>
              </Form>
            </>
          ) : (
            <>
              <Callout tone="plain">
                <p>{preview.refusal}</p>
              </Callout>
              <p>
                <a href="/operator/money">Back to the invoices</a>
              </p>
            </>
          )}
        </div>
      </Card>,
      "Refund",
    );
  },
  forms: {
    async refund({ ctx, param }, fields) {
      const force = fields.text("force") === "true";
      const { status } = await call(ctx, "refundInvoice", {
        id: param("id"),
        ...parsed(InvoiceRefund, { force }),
      });
      return {
        to: "/operator/money",
        said:
          status === "done"
            ? "The invoice is refunded."
            : "The refund is requested; it is done once the payment processor confirms it.",
      };
    },
  },
};
