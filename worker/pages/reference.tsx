import type { openApiDocument } from "../openapi.ts";
import { Layout } from "./layout.tsx";

type Document = ReturnType<typeof openApiDocument>;
type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;
const methods = ["get", "post", "patch", "delete"] as const;

/** `#/components/<kind>/<name>` or the thing itself. */
function resolve(document: Document, value: unknown): Json {
  if (!isObject(value)) return {};
  const reference = value["$ref"];
  if (typeof reference !== "string") return value;
  let found: unknown = document;
  for (const part of reference.slice(2).split("/")) found = isObject(found) ? found[part] : undefined;
  return isObject(found) ? found : {};
}

const nameOf = (schema: unknown): string | undefined =>
  isObject(schema) && typeof schema["$ref"] === "string" ? schema["$ref"].split("/").at(-1) : undefined;

/** A schema in one phrase: its type, its values, its bounds. */
function phrase(schema: Json): string {
  if (Array.isArray(schema["enum"])) return schema["enum"].map(String).join(" | ");
  if ("const" in schema) return JSON.stringify(schema["const"]);
  const options = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(options)) return options.map((one: Json) => nameOf(one) ?? phrase(one)).join(" or ");
  const type = Array.isArray(schema["type"]) ? schema["type"].join(" | ") : String(schema["type"] ?? "any");
  if (type === "array" && isObject(schema["items"]))
    return `list of ${nameOf(schema["items"]) ?? phrase(schema["items"])}`;
  const bounds = [
    schema["minimum"] !== undefined &&
      schema["minimum"] !== Number.MIN_SAFE_INTEGER &&
      `from ${String(schema["minimum"])}`,
    schema["maximum"] !== undefined &&
      schema["maximum"] !== Number.MAX_SAFE_INTEGER &&
      `to ${String(schema["maximum"])}`,
    schema["maxLength"] !== undefined && `up to ${String(schema["maxLength"])} characters`,
    schema["default"] !== undefined && `default ${JSON.stringify(schema["default"])}`,
  ].filter(Boolean);
  return [type, ...bounds].join(", ");
}

const Fields = ({ document, schema }: { document: Document; schema: unknown }) => {
  const name = nameOf(schema);
  const own = resolve(document, schema);
  const options = own["anyOf"] ?? own["oneOf"];
  if (Array.isArray(options))
    return (
      <>
        <p class="soft">One of:</p>
        {options.map((one: unknown) => (
          <div class="option">
            <Fields document={document} schema={one} />
          </div>
        ))}
      </>
    );
  const properties = isObject(own["properties"]) ? own["properties"] : null;
  const required = new Set(Array.isArray(own["required"]) ? own["required"] : []);
  return (
    <>
      {name && <p class="soft">{name}</p>}
      {properties ? (
        <table class="fields">
          {Object.entries(properties).map(([key, value]) => (
            <tr>
              <td>
                <code>{key}</code>
                {required.has(key) ? "" : <span class="soft"> optional</span>}
              </td>
              <td>{nameOf(value) ?? phrase(isObject(value) ? value : {})}</td>
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

const contentOf = (holder: Json): { schema?: unknown; example?: unknown } => {
  const content = isObject(holder["content"]) ? holder["content"] : {};
  return isObject(content["application/json"]) ? content["application/json"] : {};
};

const Operation = ({
  document,
  method,
  path,
  operation,
}: {
  document: Document;
  method: string;
  path: string;
  operation: Json;
}) => {
  const body = isObject(operation["requestBody"]) ? contentOf(operation["requestBody"]) : null;
  const responses = Object.entries(isObject(operation["responses"]) ? operation["responses"] : {});
  const parameters = (Array.isArray(operation["parameters"]) ? operation["parameters"] : []) as Json[];
  const security = JSON.stringify(operation["security"]);
  return (
    <details id={String(operation["operationId"])}>
      <summary>
        <b class={`method ${method}`}>{method.toUpperCase()}</b> <code>{path}</code>
        <span class="soft">{String(operation["summary"])}</span>
      </summary>
      <p class="soft">
        {security === "[]"
          ? "No credentials."
          : security.includes("key")
            ? "A key or a session."
            : "A session."}
      </p>
      {parameters.length > 0 && (
        <>
          <h4>Parameters</h4>
          <table class="fields">
            {parameters.map((one) => (
              <tr>
                <td>
                  <code>{String(one["name"])}</code> <span class="soft">{String(one["in"])}</span>
                </td>
                <td>{phrase(resolve(document, one["schema"]))}</td>
              </tr>
            ))}
          </table>
        </>
      )}
      {body && (
        <>
          <h4>Body</h4>
          <Fields document={document} schema={body.schema} />
          <Example label="Example" value={body.example} />
        </>
      )}
      <h4>Answers</h4>
      {responses.map(([status, response]) => {
        const own = resolve(document, response);
        const { schema, example } = contentOf(own);
        return Number(status) < 300 ? (
          <div class="answer">
            <b>{status}</b> {String(own["description"])}
            {schema !== undefined && <Fields document={document} schema={schema} />}
            <Example label="Example" value={example} />
          </div>
        ) : (
          <p class="refusal">
            <b>{status}</b> <code>{String(isObject(example) ? example["error"] : "")}</code>{" "}
            {String(own["description"])}
          </p>
        );
      })}
    </details>
  );
};

/** A readable reference, made of the OpenAPI document: no script, nothing from elsewhere. */
export const ReferencePage = ({ document }: { document: Document }) => {
  const all = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = (item as Json)[method];
      return isObject(operation) ? [{ method, path, operation }] : [];
    }),
  );
  return (
    <Layout title="API" wide>
      <h1>The Berth API</h1>
      <p>{document.info.description}</p>
      <p class="note">
        Base address <code>{document.servers?.[0]?.url}</code> · the same as{" "}
        <a href="/api/v1/openapi.json">OpenAPI 3.1</a>
      </p>
      <pre>{`curl -H "Authorization: Bearer $BERTH_API_KEY" ${document.servers?.[0]?.url}/sites`}</pre>
      {(document.tags ?? []).map((tag) => (
        <section>
          <h2>{tag.name}</h2>
          {all
            .filter(({ operation }) => Array.isArray(operation["tags"]) && operation["tags"][0] === tag.name)
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
