import type { Pack } from "../../../protocol/api/packs.ts";
import type { OwnPack } from "../../services/packs/list.ts";
import { money } from "../money.ts";
import { Choices, Select } from "./form.tsx";

const size = (mb: number): string => (mb >= 1024 ? `${mb / 1024} GB` : `${mb} MB`);

/** What a pack has, in one line, which breaks only between its parts. */
export const packText = ({ memoryMb, cpuMilli, diskGb }: Pack): string =>
  [
    `${size(memoryMb)} memory`,
    `${cpuMilli / 1000} ${cpuMilli === 1000 ? "core" : "cores"}`,
    `${diskGb} GB disk`,
  ]
    .map((part) => part.replaceAll(" ", "\u00a0"))
    .join(" · ");

/** `where`, if a plan with more of something is on offer. */
export const ifBigger = (
  packs: readonly OwnPack[],
  pack: OwnPack | undefined,
  of: (pack: Pack) => number,
  where: string,
): string | undefined =>
  pack && packs.some((other) => other.isOffered && other.kind === pack.kind && of(other) > of(pack))
    ? where
    : undefined;

export const monthsOf = (count: number): string => (count === 1 ? "1 month" : `${count} months`);
export const monthly = ({ amountCents, currency }: Pack): string => `${money(amountCents, currency)} a month`;

/** The terms to pay for, as options of a field: every pack has the same. */
const termOptions = (packs: readonly Pack[]): [value: string, label: string][] =>
  (packs[0]?.terms ?? []).map(({ months, discountPercent }) => [
    String(months),
    discountPercent > 0 ? `${monthsOf(months)}, ${discountPercent}% off` : monthsOf(months),
  ]);

/** Cards of packs with their prices per month. `effect`: what choosing it means, and costs now. */
export const PlanCards = <Of extends Pack>({
  packs,
  value,
  effect,
  isLegendHidden = false,
}: {
  packs: readonly Of[];
  value?: string | undefined;
  effect?: (pack: Of) => string;
  isLegendHidden?: boolean;
}) => (
  <Choices
    name="packId"
    legend="Plan"
    isLegendHidden={isLegendHidden}
    value={value ?? packs[0]?.id}
    options={packs.map((pack) => ({
      value: pack.id,
      title: pack.name,
      end: <span>{monthly(pack)}</span>,
      text: effect ? (
        <>
          {packText(pack)}
          <br />
          {effect(pack)}
        </>
      ) : (
        packText(pack)
      ),
    }))}
  />
);

/** The term that is paid for; it is asked for beside the cards. */
export const TermField = ({
  packs,
  label = "Paid for",
  value = 1,
  hint,
}: {
  packs: readonly Pack[];
  label?: string;
  value?: number;
  hint?: string;
}) => (
  <Select
    name="billingTerm"
    label={label}
    value={String(value)}
    options={termOptions(packs)}
    {...(hint !== undefined && { hint })}
  />
);

/** What the chosen plan costs for the chosen term. Without a script the invoice says it, before anything is paid. */
export const PlanTotal = ({ packs }: { packs: readonly Pack[] }) => (
  <plan-total
    data-prices={JSON.stringify(
      Object.fromEntries(
        packs.map(({ id, terms }) => [
          id,
          Object.fromEntries(terms.map((term) => [term.months, term.amountCents])),
        ]),
      ),
    )}
    data-currency={packs[0]?.currency ?? "USD"}
  >
    <span class="soft">The invoice shows the total before you pay.</span>
  </plan-total>
);
