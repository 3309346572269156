import { call } from "../../api/call.ts";
import { AppError } from "../../domain/app-error.ts";
import { ChangePlan, chosenPlan, planChanged } from "../kit/change-plan.tsx";
import { Card, Heading } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";

/** A site's or a database's term, among those of the account. @throws AppError not_found */
const termOf = ({ viewer, param }: Asked) => {
  const term = viewer.terms.find(({ id }) => id === param("id"));
  if (!term) throw new AppError("not_found");
  return term;
};

export const planChange: Screen = {
  path: "/billing/plan/:id",
  async show(asked) {
    const term = termOf(asked);
    const { data } = await call(asked.ctx, "listPacks", { limit: 100 });
    return {
      title: `Plan of ${term.name}`,
      section: "billing",
      crumbs: [{ label: "Billing", href: "/billing" }],
      about: [term.id],
      body: (
        <>
          <Heading
            title={`Plan of ${term.name}`}
            below="A more expensive plan applies once the rest of the term is paid; any other at the next renewal."
          />
          <Card>
            <div class="body">
              {term.paidUntil === null ? (
                <p class="soft">
                  The plan can be changed once the first invoice is paid. <a href="/billing">Billing</a>
                </p>
              ) : (
                <ChangePlan
                  packs={data.filter(({ kind }) => kind === term.kind)}
                  term={term}
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
      const term = termOf(asked);
      const change = { id: term.id, ...chosenPlan(fields) };
      const changed =
        term.kind === "site"
          ? await call(asked.ctx, "patchSite", change)
          : await call(asked.ctx, "patchDatabase", change);
      return "takesEffect" in changed ? planChanged(changed, "/billing") : { to: "/billing" };
    },
  },
};
