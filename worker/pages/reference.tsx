import type { Child } from "hono/jsx";
import type { openApiDocument } from "../openapi.ts";
import { Layout } from "./kit/layout.tsx";
import { Code, Heading } from "./kit/parts.tsx";

type Document = ReturnType<typeof openApiDocument>;
/** The JSON Schema keywords that our document uses. */
type Schema = {
  $ref?: string;
  description?: string;
  allOf?: Schema[];
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
};
type Media = { schema?: Schema; example?: unknown };
type Body = { $ref?: string; description?: string; content?: { "application/json"?: Media } };
type OperationObject = {
  operationId: string;
  summary: string;
  tags: string[];
  security: object[];
  parameters?: { name: string; in: string; description?: string; schema: Schema }[];
  requestBody?: Body;
  responses: Record<string, Body>;
};
const methods = ["get", "post", "patch", "delete"] as const;

/** Resolves a reference to `#/components/<kind>/<name>`; anything else is returned as is. */
function resolve<Thing extends { $ref?: string }>(document: Document, thing: Thing): Thing {
  if (thing.$ref === undefined) return thing;
  let found: unknown = document;
  for (const part of thing.$ref.slice(2).split("/")) found = (found as Record<string, unknown>)[part];
  return found as Thing;
}

const nameOf = (schema: Schema): string | undefined => schema.$ref?.split("/").at(-1);

/** Describes a schema in one phrase: its type, values and bounds. */
function phrase(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema) ?? "";
  if (schema.allOf) return schema.allOf.map(phrase).join(" and ");
  if (schema.enum) return schema.enum.map(String).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.map(phrase).join(" or ");
  if (schema.items) return `list of ${phrase(schema.items)}`;
  const { minimum, maximum, maxLength } = schema;
  return [
    [schema.type ?? "any"].flat().join(" | "),
    minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && `from ${minimum}`,
    maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && `to ${maximum}`,
    maxLength !== undefined && `up to ${maxLength} characters`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** The type and description of each field or parameter. */
const Meaning = ({ schema, description }: { schema: Schema; description: string | undefined }) => (
  <td>
    {phrase(schema)}
    {description && (
      <>
        <br />
        <span class="soft">{description.replaceAll("`", "")}</span>
      </>
    )}
  </td>
);

const Fields = ({ document, schema }: { document: Document; schema: Schema }) => {
  const own = resolve(document, schema);
  const options = own.anyOf ?? own.oneOf;
  if (options)
    return (
      <>
        <p class="soft">One of:</p>
        {options.map((one) => (
          <div class="option">
            <Fields document={document} schema={one} />
          </div>
        ))}
      </>
    );
  return (
    <>
      {nameOf(schema) && <p class="soft">{nameOf(schema)}</p>}
      {own.properties ? (
        <table class="fields">
          {Object.entries(own.properties).map(([key, value]) => (
            <tr>
              <td>
                <code>{key}</code>
                {!own.required?.includes(key) && <span class="soft"> optional</span>}
              </td>
              <Meaning schema={value} description={value.description} />
            </tr>
          ))}
        </table>
      ) : (
        <p>{phrase(own)}</p>
      )}
    </>
  );
};

const Example = ({ label, value }: { label: string; value: unknown }) =>
  value === undefined ? null : (
    <>
      <p class="soft">{label}</p>
      <pre tabindex={0}>{JSON.stringify(value, null, 2)}</pre>
    </>
  );

const Answer = ({ document, status, answer }: { document: Document; status: string; answer: Body }) => {
  const own = resolve(document, answer);
  const { schema, example } = own.content?.["application/json"] ?? {};
  if (Number(status) >= 400)
    return (
      <p class="refusal">
        <b>{status}</b> <code>{(example as { error?: string } | undefined)?.error}</code> {own.description}
      </p>
    );
  return (
    <div class="answer">
      <b>{status}</b> {own.description}
      {schema && <Fields document={document} schema={schema} />}
      <Example label="Example" value={example} />
    </div>
  );
};

const credentials = (security: object[]): string =>
  security.length === 0
    ? "No key."
    : security.some((one) => "setupToken" in one)
      ? "The installation's SETUP_TOKEN."
      : security.some((one) => "key" in one)
        ? "A key or a session."
        : "A session.";

type Listed = { method: string; path: string; operation: OperationObject };
const Operation = ({ document, method, path, operation }: Listed & { document: Document }) => {
  const body = operation.requestBody?.content?.["application/json"];
  return (
    <details
      id={operation.operationId}
      data-entry={`${operation.operationId} ${method} ${path} ${operation.summary}`}
    >
      <summary>
        <b class={`method ${method}`}>{method.toUpperCase()}</b> <code>{path}</code>
        <span class="soft">{operation.summary.replaceAll("`", "")}</span>
      </summary>
      <p class="row soft">
        {credentials(operation.security)} <a href={`#${operation.operationId}`}>Link to this</a>
      </p>
      {operation.parameters && (
        <>
          <h4>Parameters</h4>
          <table class="fields">
            {operation.parameters.map((one) => (
              <tr>
                <td>
                  <code>{one.name}</code> <span class="soft">{one.in}</span>
                </td>
                <Meaning schema={one.schema} description={one.description ?? one.schema.description} />
              </tr>
            ))}
          </table>
        </>
      )}
      {body?.schema && (
        <>
          <h4>Body</h4>
          <Fields document={document} schema={body.schema} />
          <Example label="Example" value={body.example} />
        </>
      )}
      <h4>Responses</h4>
      {Object.entries(operation.responses).map(([status, answer]) => (
        <Answer document={document} status={status} answer={answer} />
      ))}
    </details>
  );
};

/** The topics by which guides and operations are found; an operation's tag has its own. */
const slug = (name: string): string => `topic-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;

/** What an example is filled with: the installation's address, and a site of the reader's. Never a key. */
type Reader = { baseUrl: string; siteUrl: string; siteId: string | null };

const examples = ({ baseUrl, siteId }: Reader): readonly (readonly [language: string, code: string])[] => {
  const site = siteId ?? "site_…";
  return [
    [
      "curl",
      `export BERTH_API_KEY=sk_…   # Settings, API keys
curl -H "Authorization: Bearer $BERTH_API_KEY" ${baseUrl}/sites
curl -X PATCH ${baseUrl}/sites/${site} \\
  -H "Authorization: Bearer $BERTH_API_KEY" -H "Content-Type: application/json" \\
  -d '{"action":"deploy"}'`,
    ],
    [
      "JavaScript",
      `const berth = async (method, path, body) => {
  const answer = await fetch("${baseUrl}" + path, {
    method,
    headers: {
      Authorization: \`Bearer \${process.env.BERTH_API_KEY}\`,
      ...(body && { "Content-Type": "application/json" }),
    },
    body: body && JSON.stringify(body),
  });
  const result = await answer.json();
  if (!answer.ok) throw new Error(result.reason ?? result.error);
  return result;
};
console.log((await berth("GET", "/sites")).data);
await berth("PATCH", "/sites/${site}", { action: "deploy" });`,
    ],
    [
      "Python",
      `import json, os, urllib.request

def berth(method, path, body=None):
    request = urllib.request.Request("${baseUrl}" + path, method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["BERTH_API_KEY"],
                 "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

print(berth("GET", "/sites")["data"])
berth("PATCH", "/sites/${site}", {"action": "deploy"})`,
    ],
  ];
};

const To = ({ id, children }: { id: string; children: Child }) => <a href={`#${id}`}>{children}</a>;

type Guide = { title: string; body: (reader: Reader) => Child };
const guides: readonly Guide[] = [
  {
    title: "Your first site",
    body: () => (
      <ol>
        <li>
          In the dashboard, choose <a href="/sites/new">New site</a> and paste the address of a Git
          repository. Berth inspects it and shows how it would build it.
        </li>
        <li>Choose a plan and pay the invoice. The site is built immediately while its log is shown.</li>
        <li>
          The site has its own HTTPS address. Add your own domain under Domains, and variables under
          Variables.
        </li>
        <li>Add the deploy webhook to your Git host, and every push is deployed.</li>
      </ol>
    ),
  },
  {
    title: "A first request",
    body: (reader) => (
      <>
        <p>
          Create a key under <a href="/account/keys">Settings, API keys</a>, and keep it in a variable. This
          lists your sites, then deploys {reader.siteId === null ? "one" : "yours"}:
        </p>
        {examples(reader).map(([language, code], index) => (
          <details class="fold" name="first-request" open={index === 0}>
            <summary>{language}</summary>
            <Code text={code} of={language} />
          </details>
        ))}
      </>
    ),
  },
  {
    title: "Command line",
    body: ({ siteUrl }) => (
      <>
        <p>The berth program does what the dashboard does, in continuous integration too.</p>
        <Code
          of="commands"
          text={`curl -fsSL ${siteUrl}/install/cli | sh
berth login ${siteUrl}   # shows a code, which you confirm in the browser
berth link my-app  # links this checkout to the site
berth deploy       # deploys and follows the log
berth logs -f`}
        />
      </>
    ),
  },
  {
    title: "Databases",
    body: () => (
      <>
        <p>
          Create one under <a href="/databases/new">New database</a> and choose the site that it is for: it is
          placed beside the site, which gets the address as <code>DATABASE_URL</code>. In the API, these are{" "}
          <To id="createDatabase">createDatabase</To> and <To id="linkDatabase">linkDatabase</To>.
        </p>
        <p>
          It is backed up every day, and each backup is restored into a temporary server and compared. A
          statement that writes, sent through <To id="queryDatabase">queryDatabase</To> must be sent twice,
          the second time with the token from the first response.
        </p>
      </>
    ),
  },
  {
    title: "Paying",
    body: () => (
      <p>
        Each site and database is paid for one term in advance, by invoice. Whoever has an invoice's address
        can pay it. <To id="listPacks">listPacks</To> shows the prices, and{" "}
        <To id="getAccount">getAccount</To> what is paid and owed. Nothing runs before its invoice is paid,
        and nothing is deleted without a warning.
      </p>
    ),
  },
  {
    title: "Errors, limits and retries",
    body: () => (
      <ul>
        <li>
          An error is <code>{'{"error": "conflict", "reason": "…"}'}</code>; <code>reason</code> says what to
          do, and <code>issues</code> names each wrong field of a 400.
        </li>
        <li>
          429 comes with <code>Retry-After</code>, in seconds.
        </li>
        <li>
          Send <code>Idempotency-Key</code> with a request that changes something: for a day, sending it again
          returns the first response.
        </li>
        <li>
          Lists with <code>nextCursor</code> accept <code>limit</code> and <code>cursor</code>;{" "}
          <code>nextCursor</code> is the cursor of the next page.
        </li>
        <li>Logs and events are server-sent events, which resume after Last-Event-ID.</li>
      </ul>
    ),
  },
  {
    title: "Assistants",
    body: ({ siteUrl }) => (
      <p>
        A client of the Model Context Protocol uses your account with a key at <code>{`${siteUrl}/mcp`}</code>
        . Anything destructive runs only after you confirm it, in the client or on one of our pages.
      </p>
    ),
  },
];

const Topics = ({ topics }: { topics: readonly string[] }) => (
  <>
    <h2>Guides</h2>
    {guides.map(({ title }) => (
      <a href={`#${slug(title)}`}>{title}</a>
    ))}
    <h2>Reference</h2>
    {topics.map((name) => (
      <a href={`#${slug(`api ${name}`)}`}>{name}</a>
    ))}
    <a href="#topic-shapes">Shapes</a>
  </>
);

/**
 * Guides, then a reference generated from the OpenAPI document. All of it is read without a script; with one it is searched, and a link
 * opens its fold.
 */
export const ReferencePage = ({ document, reader }: { document: Document; reader: Reader }) => {
  const all = Object.entries(document.paths ?? {}).flatMap(([path, item]): Listed[] =>
    methods.flatMap((method) => {
      const operation = item[method] as OperationObject | undefined;
      // Operations outside the base URL are shown with their full URL.
      return operation ? [{ method, path: `${item.servers?.[0]?.url ?? ""}${path}`, operation }] : [];
    }),
  );
  const topics = (document.tags ?? [])
    .map(({ name }) => name)
    .filter((name) => all.some(({ operation }) => operation.tags.includes(name)));
  return (
    <Layout title="Docs" section="docs" islands={["docs"]} bare>
      <div class="docs">
        <nav class="topics" aria-label="Topics">
          <Topics topics={topics} />
        </nav>
        <div class="text">
          <Heading title="Docs" below="Guides first, then every API request." />
          <docs-search>
            <label class="needs-script">
              <span class="hidden-text">Search guides and requests</span>
              <input type="search" placeholder="Search guides and requests" autocomplete="off" />
            </label>
            <p class="soft small" role="status" />
          </docs-search>
          <details class="fold topics-fold">
            <summary>Topics</summary>
            <nav class="topics" aria-label="Topics, on phones">
              <Topics topics={topics} />
            </nav>
          </details>
          {guides.map(({ title, body }) => (
            <section id={slug(title)} data-topic>
              <h2>{title}</h2>
              <div data-entry={`guide ${title}`}>{body(reader)}</div>
            </section>
          ))}
          <section data-topic>
            <h2 id="topic-reference">The Berth API</h2>
            <div data-entry="api base address openapi">
              <p>{document.info.description?.replaceAll("`", "")}</p>
              <p class="note">
                Base address <code>{document.servers?.[0]?.url}</code> · also as{" "}
                <a href="/api/v1/openapi.json">OpenAPI 3.1</a>
              </p>
            </div>
          </section>
          {topics.map((name) => (
            <section id={slug(`api ${name}`)} data-topic>
              <h2>{name}</h2>
              {all
                .filter(({ operation }) => operation.tags.includes(name))
                .map((one) => (
                  <Operation document={document} {...one} />
                ))}
            </section>
          ))}
          <section id="topic-shapes" data-topic>
            <h2>Shapes</h2>
            {Object.keys(document.components?.schemas ?? {}).map((name) => (
              <details id={name} data-entry={name}>
                <summary>
                  <code>{name}</code>
                </summary>
                <Fields document={document} schema={{ $ref: `#/components/schemas/${name}` }} />
              </details>
            ))}
          </section>
        </div>
      </div>
    </Layout>
  );
};
