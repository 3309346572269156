import * as z from "zod";
import { DatabaseCreate } from "../../../protocol/api/databases.ts";
import { databaseTypes } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { AppError } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { Button, Choices, Field, Form, Select } from "../kit/form.tsx";
import { allOf, sitesOf } from "../kit/paging.ts";
import { Card, Heading } from "../kit/parts.tsx";
import { PlanCards, PlanTotal, TermField } from "../kit/plans.tsx";
import type { Screen } from "../kit/screen.ts";
import { engineVersion } from "./frame.tsx";

const purpose = {
  postgresql: "The usual choice for an application's data.",
  mysql: "For applications that are written for MySQL.",
  redis: "Caches, queues and sessions.",
} as const;

/** A form sends numbers as text. */
const NewDatabase = z.looseObject({ billingTerm: z.coerce.number().optional() }).pipe(DatabaseCreate);

export const newDatabase: Screen = {
  path: "/databases/new",
  async show({ ctx, query }) {
    const [packs, sites] = await Promise.all([allOf((page) => call(ctx, "listPacks", page)), sitesOf(ctx)]);
    const offered = packs.filter(({ kind }) => kind === "database");
    return {
      title: "New database",
      section: "databases",
      crumbs: [{ label: "Databases", href: "/databases" }],
      islands: ["plan-total"],
      body: (
        <>
          <Heading
            title="New database"
            below="It is set up as soon as its invoice is paid, which takes about a minute."
          />
          <Card>
            <div class="body">
              <Form id="create">
                <Choices
                  name="type"
                  legend="Kind"
                  value="postgresql"
                  options={databaseTypes.map((type) => ({
                    value: type,
                    title: engineVersion(type),
                    text: purpose[type],
                  }))}
                />
                <Field
                  name="name"
                  label="Name"
                  hint={"Sites reach it at name.internal: a–z, 0–9, - and _."}
                  required
                  maxlength={63}
                  placeholder="shop-data"
                />
                <PlanCards packs={offered} />
                <TermField packs={offered} />
                {sites.length > 0 && (
                  <Select
                    name="siteId"
                    label="For the site"
                    hint="It is placed beside this site, which gets its address as a secret variable."
                    value={query("site") ?? ""}
                    options={[["", "no site yet"], ...sites.map(({ id, name }) => [id, name] as const)]}
                  />
                )}
                <div class="form-end row">
                  <Button label="Create and continue to the invoice" kind="primary" />
                  <PlanTotal packs={offered} />
                </div>
              </Form>
            </div>
          </Card>
        </>
      ),
    };
  },
  forms: {
    async create({ ctx }, fields) {
      const { siteId = "", ...input } = fields.record();
      const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== ""));
      const wanted = parsed(NewDatabase, given);
      const { databaseId, invoiceToken } = await call(ctx, "createDatabase", wanted);
      const to = `/invoice/${invoiceToken}`;
      if (siteId === "") return { to };
      // The link is made before the payment, so that the database is placed on the site's host.
      try {
        const { variable } = await call(ctx, "linkDatabase", { id: databaseId, siteId });
        return { to, said: `The database is created. Your site gets its address as ${variable}.` };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const { reason } = error.extra;
        return {
          to,
          tone: "warn",
          said: `The database is created, but not linked to the site${typeof reason === "string" ? `: ${reason}` : "."} Link it on its page, with the variable ${databaseEngines[wanted.type].variable} or another.`,
        };
      }
    },
  },
};
