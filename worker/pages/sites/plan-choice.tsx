import type { Pack } from "../../../protocol/api/packs.ts";
import { Choice } from "../kit/form.tsx";
import { monthly, monthsOf, packText } from "../kit/plans.tsx";

/** Cards of plans and periods. `current`: what is chosen at first; the first plan and one month if there is none. */
export const PlanChoice = ({
  packs,
  current,
}: {
  packs: readonly Pack[];
  current?: { packId: string; billingTerm: number };
}) => {
  const chosen = current?.packId ?? packs[0]?.id;
  const of = packs.find(({ id }) => id === chosen) ?? packs[0];
  return (
    <>
      <fieldset class="choices">
        <legend class="hidden-text">Plan</legend>
        {packs.map((pack) => (
          <Choice
            name="packId"
            value={pack.id}
            checked={pack.id === chosen}
            title={
              <>
                {pack.name} <span class="price">{monthly(pack)}</span>
              </>
            }
          >
            {packText(pack)}
          </Choice>
        ))}
      </fieldset>
      <fieldset class="choices small-choices form-end">
        <legend>Billing period</legend>
        {of?.terms.map(({ months, discountPercent }) => (
          <Choice
            name="billingTerm"
            value={String(months)}
            checked={months === (current?.billingTerm ?? 1)}
            title={monthsOf(months)}
          >
            {discountPercent > 0 ? `${discountPercent} % off` : undefined}
          </Choice>
        ))}
      </fieldset>
    </>
  );
};
