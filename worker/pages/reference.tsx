import type { openApiDocument } from "../openapi.ts";
import { Layout } from "./kit/layout.tsx";

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
      <pre>{JSON.stringify(value, null, 2)}</pre>
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
    <details id={operation.operationId}>
      <summary>
        <b class={`method ${method}`}>{method.toUpperCase()}</b> <code>{path}</code>
        <span class="soft">{operation.summary.replaceAll("`", "")}</span>
      </summary>
      <p class="soft">{credentials(operation.security)}</p>
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
      <h4>Answers</h4>
      {Object.entries(operation.responses).map(([status, answer]) => (
        <Answer document={document} status={status} answer={answer} />
      ))}
    </details>
  );
};

/** A readable reference generated from the OpenAPI document: no scripts, no external resources. */
export const ReferencePage = ({ document }: { document: Document }) => {
  const all = Object.entries(document.paths ?? {}).flatMap(([path, item]): Listed[] =>
    methods.flatMap((method) => {
      const operation = item[method] as OperationObject | undefined;
      // Operations outside the base URL are shown with their full URL.
      return operation ? [{ method, path: `${item.servers?.[0]?.url ?? ""}${path}`, operation }] : [];
    }),
  );
  return (
    <Layout title="API" wide>
      <h1>The Berth API</h1>
      <p>{document.info.description?.replaceAll("`", "")}</p>
      <p class="note">
        Base address <code>{document.servers?.[0]?.url}</code> · the same as{" "}
        <a href="/api/v1/openapi.json">OpenAPI 3.1</a>
      </p>
      <pre>{`curl -H "Authorization: Bearer $BERTH_API_KEY" ${document.servers?.[0]?.url}/sites`}</pre>
      {(document.tags ?? []).map((tag) => (
        <section>
          <h2>{tag.name}</h2>
          {all
            .filter(({ operation }) => operation.tags.includes(tag.name))
            .map((one) => (
              <Operation document={document} {...one} />
            ))}
        </section>
      ))}
      <section>
        <h2>Shapes</h2>
        {Object.keys(document.components?.schemas ?? {}).map((name) => (
          <details id={name}>
            <summary>
              <code>{name}</code>
            </summary>
            <Fields document={document} schema={{ $ref: `#/components/schemas/${name}` }} />
          </details>
        ))}
      </section>
    </Layout>
  );
};
