import { isId } from "../../../protocol/ids.ts";
import { call } from "../../api/call.ts";
import { renewalLink } from "../../billing/terms/renewal-link.ts";
import { listOwnPacks } from "../../services/packs/list.ts";
import { ChangePlan, chosenPlan, isOver, planChanged } from "../kit/change-plan.tsx";
import { Card, Heading } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";

/** A site's or a database's term. @throws AppError not_found */
async function termOf({ ctx, param }: Asked) {
  const id = param("id");
  return isId("site", id)
    ? { kind: "site" as const, ...(await call(ctx, "getSite", { id })) }
    : { kind: "database" as const, ...(await call(ctx, "getDatabase", { id })) };
}

export const planChange: Screen = {
  path: "/billing/plan/:id",
  async show(asked) {
    const term = await termOf(asked);
    const [packs, renewal] = await Promise.all([listOwnPacks(asked.ctx), renewalLink(asked.ctx, term.id)]);
    return {
      title: `Plan of ${term.name}`,
      section: "billing",
      crumbs: [{ label: "Billing", href: "/billing" }],
      about: [term.id],
      body: (
        <>
          <Heading
            title={`Plan of ${term.name}`}
            {...(!isOver(term, asked.ctx.now()) && {
              below:
                renewal === null
                  ? "A more expensive plan takes effect once the rest of the term is paid; any other at the next renewal."
                  : "A plan that you choose now takes effect at the next renewal, whose invoice is replaced by one for that plan.",
            })}
          />
          <Card>
            <div class="body">
              {term.paidUntil === null ? (
                <p class="soft">
                  The plan can be changed once the first invoice is paid. <a href="/billing">Billing</a>
                </p>
              ) : (
                <ChangePlan
                  packs={packs.filter(({ kind }) => kind === term.kind)}
                  term={term}
                  renewal={renewal}
                  now={asked.ctx.now()}
                />
              )}
            </div>
          </Card>
        </>
      ),
    };
  },
  forms: {
    async plan(asked, fields) {
      const term = await termOf(asked);
      const change = { id: term.id, ...chosenPlan(fields) };
      const changed =
        term.kind === "site"
          ? await call(asked.ctx, "patchSite", change)
          : await call(asked.ctx, "patchDatabase", change);
      return "takesEffect" in changed ? planChanged(changed, "/billing") : { to: "/billing" };
    },
  },
};
