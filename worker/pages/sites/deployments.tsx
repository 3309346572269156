import { call } from "../../api/call.ts";
import { Button, Check, Field, Form } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Live, Pager } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { DeploymentTable } from "./deployment-table.tsx";
import { deploy } from "./failure.tsx";
import { siteFrame } from "./frame.tsx";

/** All versions of a site, and a form to deploy one that is not the newest. */
export const siteDeployments: Screen = {
  path: "/sites/:id{site_[0-9a-z]+}/deployments",
  async show({ ctx, param, query }) {
    const id = param("id");
    const [site, { data, nextCursor }] = await Promise.all([
      call(ctx, "getSite", { id }),
      call(ctx, "listDeployments", { id, limit: 25, ...cursorIn(query, "deployment") }),
    ]);
    const here = `/sites/${id}/deployments`;
    const canDeploy = !["PENDING", "SUSPENDED", "DELETING"].includes(site.status);
    return siteFrame(
      site,
      "Deployments",
      <>
        <Live id="deployments">
          <DeploymentTable site={site} deployments={data} now={ctx.now()} />
        </Live>
        <Pager path={here} next={nextCursor} label="Older deployments" />
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
                      autocomplete="off"
                      placeholder={site.branch ?? "the newest commit of the repository's default branch"}
                      hint="A commit by its whole id of 40 digits. The next deployment without one takes the site's branch again."
                    />
                  )}
                  <Check name="rebuild" label="Build from scratch, even if nothing has changed" />
                  <p class="form-end">
                    <Button label="Deploy this version" />
                  </p>
                </Form>
              </div>
            </Card>
          </div>
        )}
      </>,
    );
  },
  forms: {
    deploy: ({ ctx, param }, fields) => {
      const ref = fields.text("ref").trim();
      return deploy(ctx, param("id"), {
        ...(ref !== "" && { ref }),
        ...(fields.text("rebuild") === "true" && { rebuild: true }),
      });
    },
  },
};
