import { DeploymentListQuery, type Deployment } from "../../../protocol/api/deployments.ts";
import { deploymentStatuses, deploymentTriggers } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { Check, Field, FilterSelect, Form, Submit } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Live, Pager } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";
import { deploymentWords } from "../kit/words.ts";
import { ComparedForm } from "./compare.tsx";
import { DeploymentTable } from "./deployment-table.tsx";
import { triggerWords } from "./deployment-words.tsx";
import { deployChosen } from "./failure.tsx";
import { siteFrame } from "./frame.tsx";

/** What the address asks for; what nobody could mean is left out. */
function filtersOf(query: Asked["query"]) {
  const { status, trigger } = DeploymentListQuery.shape;
  const [wanted, begun] = [status.safeParse(query("status")).data, trigger.safeParse(query("trigger")).data];
  return { ...(wanted && { status: wanted }), ...(begun && { trigger: begun }) };
}

/** Of a stopped or failed site no version is in service, so the words of the list are not those of the filter. */
const statusWord = (status: Deployment["status"]): string =>
  status === "LIVE" ? "In service, or the last that was" : deploymentWords[status].label;

const Filters = ({ here, status, trigger }: { here: string } & ReturnType<typeof filtersOf>) => (
  <form class="filters" method="get" action={here}>
    <FilterSelect
      name="status"
      label="State"
      any="In any state"
      value={status}
      options={deploymentStatuses.map((one) => [one, statusWord(one)] as const)}
    />
    <FilterSelect
      name="trigger"
      label="By"
      any="By anyone"
      value={trigger}
      options={deploymentTriggers.map(
        (one) => [one, `By ${one === "api" ? "you or one of your keys" : triggerWords[one]}`] as const,
      )}
    />
    <button type="submit">Show</button>
    {(status ?? trigger) !== undefined && <a href={here}>Show all</a>}
  </form>
);

/** All versions of a site, and a form to deploy one that is not the newest. */
export const siteDeployments: Screen = {
  path: "/sites/:id{site_[0-9a-z]+}/deployments",
  async show({ ctx, param, query }) {
    const id = param("id");
    const filters = filtersOf(query);
    const [site, { data, nextCursor }] = await Promise.all([
      call(ctx, "getSite", { id }),
      call(ctx, "listDeployments", { id, limit: 25, ...filters, ...cursorIn(query, "deployment") }),
    ]);
    const here = `/sites/${id}/deployments`;
    const isFiltered = Object.keys(filters).length > 0;
    const canDeploy = !["PENDING", "SUSPENDED", "DELETING"].includes(site.status);
    return siteFrame(
      site,
      "Deployments",
      <>
        <Filters here={here} {...filters} />
        <Live id="deployments">
          <DeploymentTable site={site} deployments={data} now={ctx.now()} isFiltered={isFiltered} />
        </Live>
        <Pager
          path={isFiltered ? `${here}?${new URLSearchParams(filters).toString()}` : here}
          next={nextCursor}
          label="Older deployments"
        />
        {data.length > 1 && (
          <div class="below" id="compare">
            <Card title="Compare two versions">
              <div class="body">
                <ComparedForm siteId={id} deployments={data} />
              </div>
            </Card>
          </div>
        )}
        {canDeploy && (
          <div class="below" id="deploy">
            <Card title="Deploy another version">
              <div class="body">
                <Form id="deploy">
                  {site.deployType === "github" && (
                    <Field
                      name="ref"
                      label="Branch, tag or commit"
                      mono
                      maxlength={200}
                      placeholder={site.branch ?? "the newest commit of the repository's default branch"}
                      hint="A commit by its full id (40 or 64 digits). The next deployment without one uses the site's branch again."
                    />
                  )}
                  <Check name="rebuild" label="Build from scratch, even if nothing has changed" />
                  <Submit label="Deploy this version" />
                </Form>
              </div>
            </Card>
          </div>
        )}
      </>,
    );
  },
  forms: {
    deploy: deployChosen,
  },
};
