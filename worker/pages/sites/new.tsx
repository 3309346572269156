import type { Pack } from "../../../protocol/api/packs.ts";
import { EnvVariable, GitAddress, SiteCreate } from "../../../protocol/api/sites.ts";
import { DatabaseCreate } from "../../../protocol/api/databases.ts";
import { SourceInspect } from "../../../protocol/api/sources.ts";
import { parseEnvFile } from "../../../protocol/env-file.ts";
import { databaseTypes } from "../../../protocol/states.ts";
import * as z from "zod";
import { call } from "../../api/call.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { parsed } from "../../domain/parsed.ts";
import { Check, Choices, Field, Form, Select, TextArea, typedInto } from "../kit/form.tsx";
import { allOf } from "../kit/paging.ts";
import { Card, Heading } from "../kit/parts.tsx";
import type { Asked, Fields, Screen, View } from "../kit/screen.ts";
import { monthly, PlanCards, TermField } from "../kit/plans.tsx";
import { money } from "../money.ts";
import { engineVersion } from "../databases/frame.tsx";
import { Found, whyNotChecked, type Checked } from "./found.tsx";
import { nameFrom, repositoryOf } from "./repository.ts";

const path = "/sites/new";

const Source = ({ checked, repository }: { checked: Checked | null; repository: string }) => (
  <Card title="1. Source">
    <div class="body kinds">
      <Choices
        name="deployType"
        legend="Where the site comes from"
        isLegendHidden
        value="github"
        options={[
          { value: "github", title: "Git repository", text: "built on each deployment" },
          { value: "image", title: "Image", text: "from a registry" },
          { value: "dockerfile", title: "Dockerfile", text: "pasted here" },
        ]}
      />
      <div class="kind github">
        <Field
          name="githubUrl"
          label="Repository"
          value={repository}
          placeholder="github.com/owner/repository"
          maxlength={300}
          wide
        />
        <div class="columns">
          <Field
            name="branch"
            label="Branch"
            placeholder="the default branch"
            maxlength={200}
            list="branches"
          />
          <Field
            name="rootDir"
            label="Folder of the app"
            placeholder="the repository's root"
            maxlength={300}
            list="folders"
          />
        </div>
        <datalist id="branches">
          {checked?.found?.branches.map((branch) => (
            <option value={branch} />
          ))}
        </datalist>
        <datalist id="folders">
          {checked?.found?.rootDirs.map((folder) => (
            <option value={folder} />
          ))}
        </datalist>
        <details class="more" open={Boolean(typedInto("create")?.["gitToken"])}>
          <summary>A private repository</summary>
          <Field
            name="gitToken"
            type="password"
            label="Access token"
            hint="With read access to the repository. It is never shown again."
            maxlength={500}
          />
        </details>
        <p class="form-end">
          <button type="submit" name="check" value="true" formnovalidate data-asks>
            Check repository
          </button>
        </p>
        <div id="found" class="form-end" aria-live="polite">
          {checked && <Found checked={checked} />}
        </div>
        {checked?.problem != null && (
          <Check name="anyway" label="Create the site anyway; I will fix this later" />
        )}
      </div>
      <div class="kind image">
        <Field name="image" label="Image" placeholder="registry.example.com/app:1" maxlength={300} wide />
        <details class="more" open={Boolean(typedInto("create")?.["registryPassword"])}>
          <summary>A private registry</summary>
          <div class="columns">
            <Field name="registryUsername" label="Username" maxlength={256} />
            <Field name="registryPassword" type="password" label="Password or token" maxlength={16_384} />
          </div>
        </details>
      </div>
      <div class="kind dockerfile">
        <TextArea
          name="dockerfile"
          label="Dockerfile"
          rows={10}
          maxlength={100_000}
          placeholder={'FROM node:24-slim\nWORKDIR /app\nCMD ["node", "-e", "…"]'}
          wide
        />
      </div>
    </div>
  </Card>
);

const App = ({ found }: { found: Checked["found"] }) => (
  <Card title="2. App">
    <div class="body">
      <div class="columns">
        <Field
          name="name"
          label="Name"
          hint="Lower-case letters, digits and hyphens; becomes part of the address. Leave empty to use the repository's name."
          pattern="[a-z0-9\-]{1,63}"
          maxlength={63}
        />
        <Field
          name="port"
          type="number"
          label="Port the app listens on"
          hint="The app receives it in the variable PORT."
          value={String(found?.port ?? 3000)}
          min={1}
          max={65_535}
        />
      </div>
      <details class="more">
        <summary>Commands</summary>
        <Field
          name="buildCommand"
          label="Build command"
          placeholder={found?.buildCommand ?? "detected from the repository"}
          maxlength={2000}
          mono
          wide
        />
        <Field
          name="startCommand"
          label="Start command"
          placeholder={found?.startCommand ?? "from the repository or the image"}
          maxlength={2000}
          mono
          wide
        />
      </details>
    </div>
  </Card>
);

const Plans = ({ packs }: { packs: Pack[] }) => (
  <Card title="3. Plan">
    <div class="body">
      <PlanCards packs={packs} isLegendHidden />
      <TermField packs={packs} />
    </div>
  </Card>
);

const Variables = ({ found, databasePacks }: { found: Checked["found"]; databasePacks: Pack[] }) => (
  <Card title="4. Variables and database">
    <div class="body">
      <TextArea
        name="variables"
        label="Variables"
        hint={
          found !== null && found.variables.length > 0
            ? `One NAME=value per line, as in a .env file, or JSON. The repository names ${found.variables.join(", ")}.`
            : "One NAME=value per line, as in a .env file, or JSON. You can add more later."
        }
        rows={4}
        maxlength={200_000}
        placeholder="LOG_LEVEL=info"
        wide
      />
      <Check name="encrypted" label="Secret: never shown again, and masked in logs" checked />
      {databasePacks.length > 0 && (
        <div class="columns">
          <Select
            name="database"
            label="With a database beside it"
            hint="On the same host; the site receives its address as a secret variable."
            options={[
              ["", "No database"],
              ...databaseTypes.map((type) => [type, engineVersion(type)] as const),
            ]}
          />
          <Select
            name="databasePackId"
            label="The database's plan"
            options={databasePacks.map((pack) => [pack.id, `${pack.name}: ${monthly(pack)}`] as const)}
          />
        </div>
      )}
    </div>
  </Card>
);

const priceOf = (pack: Pack | undefined, months: number): number =>
  pack?.terms.find((term) => term.months === months)?.amountCents ?? 0;

const Total = ({ packs, databasePacks }: { packs: Pack[]; databasePacks: Pack[] }) => {
  const typed = typedInto("create");
  const pack = packs.find(({ id }) => id === typed?.["packId"]) ?? packs[0];
  const months = Number(typed?.["billingTerm"] ?? 1);
  const databasePack = typed?.["database"]
    ? (databasePacks.find(({ id }) => id === typed["databasePackId"]) ?? databasePacks[0])
    : undefined;
  const currency = pack?.currency ?? "USD";
  const [site, database] = [priceOf(pack, months), priceOf(databasePack, months)];
  return (
    <Card title="To pay now" id="total">
      <div class="body">
        <dl class="sum">
          <dt>
            Site, <span data-sum="plan">{pack?.name}</span>
          </dt>
          <dd data-sum="site">{money(site, currency)}</dd>
          <dt>Database</dt>
          <dd data-sum="database">{databasePack ? money(database, currency) : "none"}</dd>
          <dt>
            <strong>Together</strong>
          </dt>
          <dd>
            <strong data-sum="all">{money(site + database, currency)}</strong>
          </dd>
        </dl>
        <p class="form-end">
          <button class="primary" type="submit" data-sum="button">
            Create site and continue to payment
          </button>
        </p>
        <p class="hint">
          We build and start it as soon as you pay, usually in under a minute. Nothing is charged before you
          confirm the payment.
        </p>
      </div>
    </Card>
  );
};

async function pageOf({ ctx }: Asked, checked: Checked | null, sample: string | null = null): Promise<View> {
  const data = await allOf((page) => call(ctx, "listPacks", page));
  const [packs, databasePacks] = [
    data.filter(({ kind }) => kind === "site"),
    data.filter(({ kind }) => kind === "database"),
  ];
  const prices = Object.fromEntries(
    data.map(({ id, name, currency, terms }) => [
      id,
      { name, currency, terms: Object.fromEntries(terms.map((term) => [term.months, term.amountCents])) },
    ]),
  );
  return {
    title: "New site",
    section: "sites",
    crumbs: [{ label: "Sites", href: "/sites" }],
    islands: ["new-site"],
    body: (
      <>
        <Heading title="New site" />
        {packs.length === 0 ? (
          <Card>
            <p class="body">
              No plan is on offer at the moment, so no site can be created. The operator of this installation
              can add one.
            </p>
          </Card>
        ) : (
          <new-site data-prices={JSON.stringify(prices)} {...(typedInto("create") && { "data-typed": "" })}>
            <Form id="create">
              <div class="split">
                <div class="stack">
                  <Source checked={checked} repository={sample ?? ""} />
                  <App found={checked?.found ?? null} />
                  <Plans packs={packs} />
                  <Variables found={checked?.found ?? null} databasePacks={databasePacks} />
                </div>
                <div class="stack aside">
                  <Total packs={packs} databasePacks={databasePacks} />
                </div>
              </div>
            </Form>
          </new-site>
        )}
      </>
    ),
  };
}

const pickOf = (fields: Fields, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (fields.text(name) === "" ? [] : [[name, fields.text(name)]])));

/** What a host says of the repository of the form. @throws AppError invalid_request */
async function checkedSource({ ctx }: Asked, fields: Fields): Promise<Checked> {
  const repository = repositoryOf(fields.text("githubUrl"));
  demandRepository(repository);
  const source = parsed(SourceInspect, {
    ...pickOf(fields, ["branch", "rootDir", "gitToken"]),
    githubUrl: repository,
  });
  try {
    const found = await call(ctx, "inspectSource", source);
    return { found, problem: found.problem };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { found: null, problem: whyNotChecked(error) };
  }
}

/** @throws AppError invalid_request */
function demandRepository(repository: string): void {
  if (repository === "" || !GitAddress.safeParse(repository).success)
    throw invalid("githubUrl", "Name the repository, such as github.com/owner/repository");
}

const ofKind = {
  github: ["branch", "rootDir", "gitToken", "buildCommand"],
  image: ["image", "registryUsername", "registryPassword"],
  dockerfile: ["dockerfile"],
} as const;
const Kind = z.enum(["github", "image", "dockerfile"]).catch("github");
const needed = {
  github: ["githubUrl", "Name the repository, such as github.com/owner/repository"],
  image: ["image", "Name the image, such as registry.example.com/app:1"],
  dockerfile: ["dockerfile", "Paste the Dockerfile"],
} as const;

/** @throws AppError invalid_request */
function siteOf(fields: Fields): SiteCreate {
  const kind = Kind.parse(fields.text("deployType"));
  const [field, problem] = needed[kind];
  if (fields.text(field).trim() === "") throw invalid(field, problem);
  const repository = repositoryOf(fields.text("githubUrl"));
  if (kind === "github") demandRepository(repository);
  const name = fields.text("name").trim() || nameFrom(kind === "github" ? repository : "");
  if (name === "") throw invalid("name", "Name the site");
  return parsed(SiteCreate, {
    ...pickOf(fields, [...ofKind[kind], "startCommand", "packId"]),
    ...(kind === "github" && { githubUrl: repository }),
    deployType: kind,
    name,
    port: Number(fields.text("port") || 3000),
    billingTerm: Number(fields.text("billingTerm") || 1),
  });
}

/** @throws AppError invalid_request */
function variablesOf(fields: Fields): EnvVariable[] {
  const { variables, problems } = parseEnvFile(fields.text("variables"));
  const [first] = problems;
  if (first) throw invalid("variables", `Line ${first.line}: ${first.text}`);
  const encrypted = fields.text("encrypted") === "true";
  return parsed(z.object({ variables: z.array(EnvVariable).max(200) }), {
    variables: variables.map(({ key, value }) => ({ key, value, encrypted })),
  }).variables;
}

/** A name that a database may have, from its site's. */
const databaseNameOf = (site: string): string =>
  `${site.replaceAll(/^-+|-+$/g, "").slice(0, 50) || "site"}-data`;

/** @throws AppError invalid_request */
function databaseOf(
  fields: Fields,
  site: SiteCreate,
  variables: readonly EnvVariable[],
): DatabaseCreate | null {
  if (fields.text("database") === "") return null;
  const database = parsed(DatabaseCreate, {
    ...(fields.text("databasePackId") !== "" && { packId: fields.text("databasePackId") }),
    name: databaseNameOf(site.name),
    type: fields.text("database"),
    billingTerm: site.billingTerm,
  });
  const { variable } = databaseEngines[database.type];
  if (variables.some(({ key }) => key === variable))
    throw invalid(
      "variables",
      `Remove ${variable}: the database beside the site sets it. Or keep it, and choose no database`,
    );
  return database;
}

export const newSite: Screen = {
  path,
  show: (asked) =>
    pageOf(asked, null, asked.query("sample") === "1" ? (asked.ctx.config.SAMPLE_REPOSITORY ?? null) : null),
  forms: {
    async create(asked, fields) {
      const { ctx } = asked;
      const isGit = Kind.parse(fields.text("deployType")) === "github";
      if (fields.text("check") === "true") {
        const checked = await checkedSource(asked, fields);
        const port = checked.found?.port;
        return {
          again: await pageOf(asked, checked),
          values: {
            ...(fields.text("name") === "" && { name: nameFrom(repositoryOf(fields.text("githubUrl"))) }),
            ...(port != null && ["", "3000"].includes(fields.text("port")) && { port: String(port) }),
          },
        };
      }
      const site = siteOf(fields);
      const variables = variablesOf(fields);
      const database = databaseOf(fields, site, variables);
      if (isGit && fields.text("anyway") !== "true") {
        const checked = await checkedSource(asked, fields);
        // Without an answer nobody can tell, and the build will.
        if (checked.found !== null && checked.problem !== null)
          return { again: await pageOf(asked, checked) };
      }
      const { siteId, invoiceId, invoiceToken } = await call(ctx, "createSite", site);
      const made = [invoiceId];
      try {
        if (variables.length > 0) await call(ctx, "patchSite", { id: siteId, envVariables: variables });
        if (database === null) return { to: `/invoice/${invoiceToken}` };
        const beside = await call(ctx, "createDatabase", database);
        made.push(beside.invoiceId);
        await call(ctx, "linkDatabase", { id: beside.databaseId, siteId });
        return {
          to: `/invoice/${beside.invoiceToken}`,
          said: `${site.name} and its database ${database.name} are created, each with an invoice. Pay the database's first, so that it is there when the site starts; the site's is under Billing.`,
        };
      } catch (error) {
        // All or nothing: what is refused leaves no half of it behind.
        for (const id of made) await call(ctx, "cancelInvoice", { id });
        throw error;
      }
    },
  },
};
