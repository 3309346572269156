import * as z from "zod";
import type { Database } from "../../../protocol/api/databases.ts";
import { SecretGenerate } from "../../../protocol/api/diagnosis.ts";
import { EnvRestore, type EnvVersion } from "../../../protocol/api/env-history.ts";
import { EnvVariable, type EnvVariableShown, type Site } from "../../../protocol/api/sites.ts";
import { envLine, parseEnvFile } from "../../../protocol/env-file.ts";
import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Button, Check, Field, Form, Select, Submit, TextArea, typedInto } from "../kit/form.tsx";
import { databasesOf } from "../kit/paging.ts";
import { Callout, Card, Copy, Live, Time } from "../kit/parts.tsx";
import type { Done, Fields, Screen } from "../kit/screen.ts";
import { siteFrame } from "./frame.tsx";
import { orWhy } from "./or-why.ts";

const scopes = [
  ["both", "builds and the running site"],
  ["build", "builds only"],
  ["runtime", "the running site only"],
] as const;
const scopeWords = { both: "build and run", build: "build", runtime: "run" };

/** What is done after saving. The island shows these buttons once for all staged changes; `stage` is what it calls the first one. */
const Saves = ({ site, stage = "" }: { site: Site; stage?: string }) => (
  <p class="form-end buttons" data-saves={stage}>
    <Button label="Save" kind={stage === "" ? "primary" : ""} />
    {site.status === "RUNNING" && <Button label="Save and restart" name="apply" value="restart" />}
    {!["PENDING", "SUSPENDED", "DELETING"].includes(site.status) && (
      <Button label="Save and deploy" name="apply" value="deploy" />
    )}
  </p>
);

/** `waits`: the version in service has another value, or none. */
const Waits = ({ of, waits }: { of: string; waits: boolean }) => (
  <span id={`waits-${of}`} data-live="">
    {waits && <span class="dot warn">not in service yet</span>}
  </span>
);

const Row = ({
  site,
  variable: { key, value, encrypted, scope },
  waits,
}: {
  site: Site;
  variable: EnvVariableShown;
  waits: boolean;
}) => (
  <tr data-key={key} data-scope={scope} data-encrypted={String(encrypted)}>
    <td>
      <code>{key}</code> <span class="chip">{scopeWords[scope]}</span> <Waits of={key} waits={waits} />
    </td>
    <td>
      {value === null ? (
        <span class="soft">secret, never shown again</span>
      ) : (
        <details class="reveal" id={`value-${key}`}>
          <summary>Show value</summary>
          <code class="value" data-value>
            {value}
          </code>{" "}
          <Copy text={value} of={key} />
        </details>
      )}
    </td>
    <td class="end">
      <div class="buttons">
        <details class="menu edit" id={`edit-${key}`} open={typedInto(`set:${key}`) !== undefined}>
          <summary class="button" aria-label={`Edit: ${key}`}>
            Edit
          </summary>
          <div>
            <Form id="set" of={key}>
              <input type="hidden" name="key" value={key} />
              <TextArea
                name="value"
                label={`Value of ${key}`}
                rows={3}
                maxlength={32_768}
                value={value ?? ""}
                {...(encrypted && { hint: "Empty: the secret, which is not shown, stays as it is." })}
              />
              <Select name="scope" label="Available to" value={scope} options={scopes} />
              {encrypted ? (
                <Check name="empty" label="If the field is empty, make the secret empty" />
              ) : (
                <Check name="encrypted" label="Make it a secret" />
              )}
              <Saves site={site} stage="Change" />
            </Form>
          </div>
        </details>
        <Act id="unset" of={key} label="Remove" about={key} values={{ key }} />
      </div>
    </td>
  </tr>
);

/** What a link to a database sets: the address with the password. */
const Linked = ({
  database: { id, name },
  variable,
  waits,
}: {
  database: Database;
  variable: string;
  waits: boolean;
}) => (
  <tr data-linked={variable}>
    <td>
      <code>{variable}</code> <span class="chip">database link</span> <Waits of={variable} waits={waits} />
    </td>
    <td class="soft">
      the address and password of <a href={`/databases/${id}`}>{name}</a>
    </td>
    <td class="end">
      <a class="button" href={`/databases/${id}/connect`} aria-label={`Open the link: ${variable}`}>
        Open the link
      </a>
    </td>
  </tr>
);

/** What the app finds in its environment whatever its owner's variables are. */
const BuiltIn = ({ site: { port } }: { site: Site }) => (
  <tr>
    <td>
      <code>PORT</code> <span class="chip">built in</span>
    </td>
    <td>
      <code>{port}</code>
    </td>
    <td class="end soft small">the port from the settings; a variable of this name is used only in builds</td>
  </tr>
);

/** As `.env` files are written; secrets have no value that could be written. */
const asFile = ({ envVariables }: Site): string =>
  envVariables
    .map(({ key, value }) => (value === null ? `# ${key} is a secret` : envLine(key, value)))
    .join("\n");

const AsFile = ({ site }: { site: Site }) =>
  site.envVariables.length === 0 ? null : (
    <details class="body" id="as-file">
      <summary>As a .env file</summary>
      <pre tabindex={0}>{asFile(site)}</pre>
      <p class="form-end">
        <Copy text={asFile(site)} label="Copy all" />
      </p>
    </details>
  );

const Add = ({ site }: { site: Site }) => (
  <div class="halves below">
    <Card title="Add a variable">
      <div class="body">
        <Form id="set">
          <Field name="key" label="Name" mono required maxlength={200} pattern="[A-Za-z_][A-Za-z0-9_]*" />
          <TextArea name="value" label="Value" rows={2} maxlength={32_768} autocomplete="off" />
          <Select name="scope" label="Available to" value="both" options={scopes} />
          <Check name="encrypted" label="Secret: never shown again, and masked in logs" />
          <Saves site={site} stage="Add" />
        </Form>
        <details id="generate" open={typedInto("generate") !== undefined}>
          <summary>Generate a secret</summary>
          <Form id="generate">
            <Field
              name="key"
              label="Name"
              mono
              required
              maxlength={200}
              pattern="[A-Za-z_][A-Za-z0-9_]*"
              placeholder="SESSION_SECRET"
              hint="It gets 43 random characters that nobody can see, not even you."
            />
            <Submit label="Generate" />
          </Form>
        </details>
      </div>
    </Card>
    <Card title="Add many">
      <div class="body">
        <Form id="many">
          <TextArea
            name="file"
            label="Paste a .env file"
            rows={8}
            autocomplete="off"
            placeholder={"DATABASE_URL=postgres://…\nGREETING=hello"}
            hint="Or a JSON object of names and values. A name that exists gets the new value; the others stay."
          />
          <Check name="encrypted" label="Secrets: never shown again, and masked in logs" />
          <Saves site={site} stage="Add all" />
        </Form>
      </div>
    </Card>
  </div>
);

const whoWords: Record<string, string> = {
  session: "you",
  key: "an API key",
  assistant: "the assistant",
  operator: "the operator",
  system: "the service",
};

/** Names, or of many their number, which unfolds. What the oldest one kept changed is not known, unless it was the first. */
const Changes = ({
  version: { version, changes, variables },
  isOldest,
}: {
  version: EnvVersion;
  isOldest: boolean;
}) => {
  if (isOldest && version > 1)
    return `the oldest one kept, with ${variables} ${variables === 1 ? "variable" : "variables"}`;
  const names = changes.map(({ key, change }) => `${key} ${change}`).join(", ");
  if (changes.length <= 5) return names === "" ? "no change" : names;
  const counts = (["added", "changed", "removed"] as const)
    .map((kind) => ({ kind, count: changes.filter(({ change }) => change === kind).length }))
    .flatMap(({ kind, count }) => (count === 0 ? [] : `${count} ${kind}`));
  return (
    <details id={`changes-${version}`}>
      <summary>{counts.join(", ")}</summary>
      {names}
    </details>
  );
};

const History = ({ versions, serving }: { versions: readonly EnvVersion[]; serving: number | null }) => (
  <Card title="History" id="history" live>
    <table>
      {versions.map((one, index) => {
        const { version, at, actor, current, restoredFrom } = one;
        return (
          <tr>
            <td class="any-break">
              Version {version} {current && <span class="chip">newest</span>}{" "}
              {version === serving && <span class="chip">in service</span>}
              <div class="soft small">
                {restoredFrom !== null && `version ${restoredFrom} again: `}
                <Changes version={one} isOldest={index === versions.length - 1} />
              </div>
            </td>
            <td class="soft wide-only">{actor === null ? "" : (whoWords[actor] ?? actor)}</td>
            <td class="end soft">
              <Time at={at} />
              {!current && (
                <div>
                  <Act
                    id="restore"
                    of={String(version)}
                    label="Restore"
                    about={`version ${version}`}
                    values={{ version: String(version) }}
                  />
                </div>
              )}
            </td>
          </tr>
        );
      })}
    </table>
  </Card>
);

/** Names whose values are not those that the version in service runs with. */
const waiting = (versions: readonly EnvVersion[], serving: number | null): Set<string> =>
  serving === null
    ? new Set()
    : new Set(
        versions
          .filter(({ version }) => version > serving)
          .flatMap(({ changes }) => changes.map(({ key }) => key)),
      );

/** The version of the variables that a deployment runs with. */
const servingOf = async (ctx: Ctx, deploymentId: string): Promise<number | null> =>
  (await call(ctx, "getDeployment", { id: deploymentId })).envVersion;

/** What a menu of a variable sends with the value as it was shown, which is none for a secret, leaves the value as it is. */
async function withoutKept(ctx: Ctx, id: string, changes: Change[]): Promise<EnvVariable[]> {
  const { envVariables } = await call(ctx, "getSite", { id });
  return changes.map(({ isEdit, value, ...change }) => {
    const before = isEdit && envVariables.find(({ key }) => key === change.key);
    // A field knows one kind of line break.
    const shown = before && (before.value ?? "").replaceAll(/\r\n?/g, "\n");
    return value === shown ? change : { ...change, value };
  });
}

/** Of a site that has a version in service, or had one. */
const toUse = "It takes effect once the site is restarted or deployed.";

/** Saves, then does what the button says. */
async function save(ctx: Ctx, id: string, changes: Change[], apply: string): Promise<Done> {
  const envVariables = await withoutKept(ctx, id, changes);
  const saved = await call(ctx, "patchSite", { id, envVariables });
  const to = `/sites/${id}/variables`;
  if (apply === "restart" || apply === "deploy") {
    const { found, why } = await orWhy(call(ctx, "patchSite", { id, action: apply }));
    if (why !== null) return { to, said: `Saved, but not ${apply}ed: ${why}`, tone: "warn" };
    return "deploymentId" in found
      ? { to: `/deployments/${found.deploymentId ?? ""}` }
      : { to, said: "Saved. The site is restarting with it." };
  }
  const waits = "restartRequired" in saved && saved.restartRequired;
  return { to, said: waits ? `Saved. ${toUse}` : "Saved." };
}

/** `isEdit`: of the menu of a variable, whose fields are first filled with what it is. */
const Change = EnvVariable.extend({ isEdit: z.boolean().optional() });
type Change = z.infer<typeof Change>;

/** As a form sends it: an empty value is a value. */
const one = (fields: Fields): Change =>
  parsed(Change, {
    key: fields.text("key"),
    value: fields.text("value"),
    ...(fields.text("scope") !== "" && { scope: fields.text("scope") }),
    ...(fields.text("encrypted") === "true" && { encrypted: true }),
    isEdit: fields.text("form") !== "set" && fields.text("empty") !== "true",
  });

const Staged = z.array(Change).min(1).max(200, "Save at most 200 variables at a time");

/** A JSON text that the island sends. */
function staged(text: string): Change[] {
  try {
    return parsed(Staged, JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid("changes", "not this page's changes");
    throw error;
  }
}

/** The environment of a site: what it is, what is in service of it, and what it was. */
export const siteVariables: Screen = {
  path: "/sites/:id{site_[0-9a-z]+}/variables",
  async show({ ctx, param }) {
    const id = param("id");
    const opened = call(ctx, "getSite", { id });
    const [site, history, databases, serving] = await Promise.all([
      opened,
      call(ctx, "listEnvVersions", { id }),
      databasesOf(ctx),
      opened.then(({ currentDeployment: current }) => current && servingOf(ctx, current.id)),
    ]);
    const waits = waiting(history.data, serving);
    const removed = [...waits].filter((key) => !site.envVariables.some((variable) => variable.key === key));
    const links = databases.flatMap((database) =>
      database.links.filter(({ siteId }) => siteId === id).map((link) => ({ ...link, database })),
    );
    for (const { variable, inService } of links) if (serving !== null && !inService) waits.add(variable);
    const count = site.envVariables.length + links.length;
    return siteFrame(
      site,
      "Variables",
      <berth-variables>
        <Live id="waiting" isPolled={waits.size > 0}>
          {waits.size > 0 && (site.status === "RUNNING" || site.status === "DEPLOYING") && (
            <Callout tone="warn">
              <p>
                The version in service does not have the newest values yet
                {removed.length > 0 && `; it still has ${removed.join(", ")}`}.
              </p>
              {site.status === "RUNNING" && (
                <div class="buttons">
                  <Act id="restart" action={`/sites/${id}`} label="Restart to use them" />
                </div>
              )}
            </Callout>
          )}
        </Live>
        <Card title={`Variables${count > 0 ? ` · ${count}` : ""}`}>
          {count === 0 && (
            <div class="empty">
              <h2>No variables yet</h2>
              <p>
                Settings and secrets that the app reads from its environment. We set PORT. Add one below, or
                paste a .env file.
              </p>
            </div>
          )}
          <table class="variables roomy">
            <tbody>
              <BuiltIn site={site} />
              {site.envVariables.map((variable) => (
                <Row site={site} variable={variable} waits={waits.has(variable.key)} />
              ))}
              {links.map(({ database, variable }) => (
                <Linked database={database} variable={variable} waits={waits.has(variable)} />
              ))}
            </tbody>
          </table>
          <AsFile site={site} />
        </Card>
        <p class="hidden-text" role="status" data-staged></p>
        <form method="post" data-enhanced class="staged" id="form-changes" hidden>
          <input type="hidden" name="form" value="changes" />
          <input type="hidden" name="changes" value={typedInto("changes")?.["changes"] ?? ""} />
          <strong data-count></strong>
          <Saves site={site} />
          <button type="button" class="ghost" data-discard>
            Discard
          </button>
        </form>
        <Add site={site} />
        {history.data.length > 0 && (
          <div class="below">
            <History versions={history.data} serving={serving} />
          </div>
        )}
      </berth-variables>,
      { islands: ["variables"] },
    );
  },
  forms: {
    set: ({ ctx, param }, fields) => save(ctx, param("id"), [one(fields)], fields.text("apply")),
    unset: ({ ctx, param }, fields) =>
      save(
        ctx,
        param("id"),
        [parsed(EnvVariable, { key: fields.text("key"), value: null })],
        fields.text("apply"),
      ),
    many({ ctx, param }, fields) {
      const { variables, problems } = parseEnvFile(fields.text("file"));
      const [problem] = problems;
      if (problem) throw invalid("file", `line ${problem.line}: ${problem.text}`);
      if (variables.length === 0) throw invalid("file", "write NAME=value, one per line");
      const isSecret = fields.text("encrypted") === "true";
      return save(
        ctx,
        param("id"),
        parsed(
          Staged,
          variables.map((variable) => ({ ...variable, ...(isSecret && { encrypted: true }) })),
        ),
        fields.text("apply"),
      );
    },
    changes: ({ ctx, param }, fields) =>
      save(ctx, param("id"), staged(fields.text("changes")), fields.text("apply")),
    async generate({ ctx, param }, fields) {
      const secret = fields.read(SecretGenerate);
      const { restartRequired } = await call(ctx, "generateSecret", { id: param("id"), ...secret });
      return {
        to: `/sites/${param("id")}/variables`,
        said: `${secret.key} has a new random value.${restartRequired ? ` ${toUse}` : ""}`,
      };
    },
    async restore({ ctx, param }, fields) {
      const { version } = parsed(EnvRestore, { version: Number(fields.text("version")) });
      const { restartRequired } = await call(ctx, "restoreEnvVersion", { id: param("id"), version });
      return {
        to: `/sites/${param("id")}/variables`,
        said: `The variables are those of version ${version} again.${restartRequired ? ` ${toUse}` : ""}`,
      };
    },
  },
};
