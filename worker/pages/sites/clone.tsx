import type { Site } from "../../../protocol/api/sites.ts";
import { SiteClone } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { listed } from "../../domain/listed.ts";
import { parsed } from "../../domain/parsed.ts";
import { Field, Form, Submit } from "../kit/form.tsx";
import { allOf } from "../kit/paging.ts";
import { Card, Heading } from "../kit/parts.tsx";
import { PlanCards, PlanTotal, TermField } from "../kit/plans.tsx";
import type { Fields, Screen } from "../kit/screen.ts";

/** A free name is the account's matter; the site's own cannot be taken twice. */
const proposed = ({ name }: Site): string => `${name.slice(0, 58).replace(/-+$/, "")}-copy`;

const chosen = (fields: Fields): SiteClone =>
  parsed(SiteClone, {
    name: fields.text("name").trim(),
    ...(fields.text("packId") !== "" && { packId: fields.text("packId") }),
    billingTerm: Number(fields.text("billingTerm") || 1),
  });

const settingWords: Readonly<Record<string, string>> = {
  gitToken: "the access token of its repository",
  registryUsername: "the registry's user name",
  registryPassword: "the registry's password",
};

/** Another site like this one: a staging site, or one for each customer. */
export const siteClone: Screen = {
  path: "/sites/:id/clone",
  async show({ ctx, param }) {
    const id = param("id");
    const [site, offered] = await Promise.all([
      call(ctx, "getSite", { id }),
      allOf((page) => call(ctx, "listPacks", page)),
    ]);
    const packs = offered.filter(({ kind }) => kind === "site");
    const secrets = site.envVariables.filter(({ encrypted }) => encrypted).map(({ key }) => key);
    return {
      title: "Copy",
      section: "sites",
      crumbs: [
        { label: "Sites", href: "/sites" },
        { label: site.name, href: `/sites/${id}` },
      ],
      about: [id],
      islands: ["plan-total"],
      body: (
        <>
          <Heading
            title={`Copy ${site.name}`}
            below="Another site from the same source, with its own address, plan and invoice."
          />
          <div class="split">
            <Card title="The copy">
              <div class="body">
                <Form id="clone">
                  <Field
                    name="name"
                    label="Name"
                    hint="Lower-case letters, digits and hyphens; becomes part of the address."
                    value={proposed(site)}
                    required
                    pattern="[a-z0-9\-]{1,63}"
                    maxlength={63}
                  />
                  <PlanCards
                    packs={packs}
                    value={packs.some(({ id: offered }) => offered === site.packId) ? site.packId : undefined}
                  />
                  <TermField packs={packs} />
                  <p>
                    <PlanTotal packs={packs} />
                  </p>
                  <Submit label="Copy and continue to payment" kind="primary" />
                </Form>
              </div>
            </Card>
            <Card title="What is copied">
              <div class="body">
                <ul>
                  <li>the source, and how it is built and run;</li>
                  <li>replicas, health check and volumes, which start empty;</li>
                  <li>what visitors get: redirects, password, maintenance and the like;</li>
                  <li>variables that are not secret.</li>
                </ul>
                <h3 class="form-end">Not copied</h3>
                <ul>
                  {secrets.length > 0 && (
                    <li>
                      secret variables: <strong>{listed(secrets)}</strong>. Set them before you pay, so that
                      the first version has them;
                    </li>
                  )}
                  <li>credentials of a private repository or registry;</li>
                  <li>domains, schedules and links to databases;</li>
                  <li>the data in volumes.</li>
                </ul>
              </div>
            </Card>
          </div>
        </>
      ),
    };
  },
  forms: {
    async clone({ ctx, param }, fields) {
      const wanted = chosen(fields);
      const made = await call(ctx, "cloneSite", { id: param("id"), ...wanted });
      const secrets = made.secretsToSet;
      const credentials = made.credentialsToSet.map((name) => settingWords[name] ?? name);
      if (secrets.length + credentials.length === 0) return { to: `/invoice/${made.invoiceToken}` };
      const here = listed(secrets.length > 0 ? secrets : credentials);
      const inSettings =
        secrets.length > 0 && credentials.length > 0 ? ` and ${listed(credentials)} in the settings` : "";
      return {
        to: `/sites/${made.siteId}/${secrets.length > 0 ? "variables" : "settings"}`,
        said: `${wanted.name} is created. Secrets are not copied: set ${here} here${inSettings}, then pay its invoice on the overview.`,
        tone: "warn",
      };
    },
  },
};
