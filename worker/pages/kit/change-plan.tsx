import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import { PackChange, type Pack, type PackChanged } from "../../../protocol/api/packs.ts";
import { day } from "../../../protocol/days.ts";
import type { BillingTermMonths } from "../../../protocol/states.ts";
import * as z from "zod";
import { parsed } from "../../domain/parsed.ts";
import { chargedCents, proratedCents } from "../../domain/pricing.ts";
import type { OwnPack } from "../../services/packs/list.ts";
import { money } from "../money.ts";
import { Form, Submit } from "./form.tsx";
import { PlanCards, TermField } from "./plans.tsx";
import type { Done, Fields } from "./screen.ts";

type Termed = Pick<
  OwnAccount["terms"][number],
  "packId" | "nextPackId" | "billingTerm" | "nextBillingTerm" | "billingDay" | "paidUntil"
>;

const priceOf = (pack: Pack, months: number): number =>
  pack.terms.find((term) => term.months === months)?.amountCents ?? pack.amountCents * months;

/** What a change to this pack means: from when it applies, and what is paid for it now. */
function effectOf(
  pack: OwnPack,
  old: OwnPack | undefined,
  { term, renewal, now }: { term: Termed; renewal: string | null; now: Date },
): string {
  if (pack.id === term.packId) {
    const own = pack.isOffered ? "Your plan" : "Your plan, which is no longer offered";
    return term.nextPackId === null ? own : `${own}: choose it to keep it`;
  }
  if (term.paidUntil === null || !old) return "";
  const until = new Date(term.paidUntil);
  if (pack.amountCents <= old.amountCents || renewal !== null)
    return `From ${day(term.paidUntil)} on, at the next renewal`;
  const months = term.billingTerm;
  const cents = chargedCents(
    proratedCents(
      [priceOf(old, months), priceOf(pack, months)],
      { months, paidUntil: until, billingDay: term.billingDay },
      now,
    ),
  );
  return `${money(cents, pack.currency)} now for the time until ${day(term.paidUntil)}. It takes effect once paid`;
}

/** Whether its paid term has ended: then its plan changes only once the renewal is paid. */
export const isOver = ({ paidUntil }: Termed, now: Date): boolean =>
  paidUntil !== null && new Date(paidUntil) <= now;

/** The form `plan`, which `changePlan` takes. */
export const ChangePlan = ({
  packs: own,
  term,
  renewal,
  now,
  isLegendHidden = false,
}: {
  packs: readonly OwnPack[];
  term: Termed;
  /** Where its open renewal is paid, with which every change takes effect; null: there is none. */
  renewal: string | null;
  now: Date;
  /** A heading above says it already. */
  isLegendHidden?: boolean;
}) => {
  if (isOver(term, now))
    return (
      <p class="soft">
        The plan can be changed once {renewal === null ? "the renewal" : <a href={renewal}>the renewal</a>} is
        paid.
      </p>
    );
  const packs = own.filter(({ id, isOffered }) => isOffered || id === term.packId || id === term.nextPackId);
  const old = packs.find(({ id }) => id === term.packId);
  return (
    <Form id="plan">
      <PlanCards
        packs={packs}
        isLegendHidden={isLegendHidden}
        value={term.nextPackId ?? term.packId}
        effect={(pack) => effectOf(pack, old, { term, renewal, now })}
      />
      <TermField
        packs={packs}
        label="Renewed for"
        value={term.nextBillingTerm ?? term.billingTerm}
        hint="From the next renewal on."
      />
      <Submit label="Change the plan" />
    </Form>
  );
};

const Chosen = z
  .looseObject({
    billingTerm: z.coerce
      .number()
      .transform((count) => count as BillingTermMonths)
      .optional(),
  })
  .pipe(PackChange);

/** @throws AppError invalid_request */
export const chosenPlan = (fields: Fields): PackChange => parsed(Chosen, fields.record());

/** Where a change leads: to the invoice that must be paid first, or back. */
export function planChanged({ takesEffect, invoiceToken, nextPackId }: PackChanged, back: string): Done {
  if (invoiceToken !== null && takesEffect === "on_payment") return { to: `/invoice/${invoiceToken}` };
  return {
    to: back,
    said: {
      now: "The plan is changed.",
      on_payment: "The plan changes once its invoice is paid.",
      at_renewal: `The ${nextPackId === null ? "term" : "plan"} changes at the next renewal.`,
      never: "The plan stays as it is.",
    }[takesEffect],
  };
}
