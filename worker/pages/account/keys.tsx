import { KeyCreate, type Key } from "../../../protocol/api/keys.ts";
import { call } from "../../api/call.ts";
import { Act, Field, Form, Submit } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Day, Empty, Heading, Pager, Tabs, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { CodeField } from "./code-field.tsx";
import { accountTabs } from "./tabs.ts";

/** Where a key comes from, and what it is good for. */
const originWords: Record<Key["origin"], string> = {
  dashboard: "created here",
  device: "command line, approved here",
  setup: "created during setup",
  mcp: "your assistant (MCP), tools only",
};

const Row = ({ apiKey }: { apiKey: Key }) => (
  <tr>
    <td class="any-break">
      <strong>{apiKey.name}</strong>
      <br />
      <code>{apiKey.start}…</code> <span class="soft small">{originWords[apiKey.origin]}</span>
    </td>
    <td class="soft">
      created <Day at={apiKey.createdAt} />
    </td>
    <td class="soft">
      {apiKey.lastUsedAt ? <>last used {<Time at={apiKey.lastUsedAt} />}</> : "never used"}
    </td>
    <td class="end">
      <Act
        id="revoke"
        of={apiKey.id}
        label="Revoke"
        about={apiKey.name}
        kind="danger"
        values={{ id: apiKey.id }}
      />
    </td>
  </tr>
);

export const keys: Screen = {
  path: "/account/keys",
  async show({ ctx, query, viewer }) {
    const { data, nextCursor } = await call(ctx, "listKeys", {
      limit: 100,
      ...cursorIn(query, "key"),
    });
    return {
      title: "API keys",
      section: "settings",
      crumbs: [{ label: "Settings", href: "/account" }],
      body: (
        <>
          <Heading title="Settings" />
          <Tabs label="Settings" tabs={accountTabs} current="/account/keys" />
          <div class="split">
            <Card title="API keys" id="keys">
              {data.length === 0 ? (
                <Empty
                  title="No keys yet"
                  text="A key lets a program act as you, within 60 requests a minute."
                />
              ) : (
                <table class="roomy">
                  {data.map((apiKey) => (
                    <Row apiKey={apiKey} />
                  ))}
                </table>
              )}
            </Card>
            <Card title="Create new key">
              <div class="body">
                <Form id="create">
                  <Field
                    name="name"
                    prose
                    label="Name"
                    hint="Where it is used, such as Laptop. The key is shown once."
                    required
                    maxlength={100}
                  />
                  {viewer.twoFactorEnabled && <CodeField />}
                  <Submit label="Create key" kind="primary" />
                </Form>
              </div>
            </Card>
          </div>
          <Pager path="/account/keys" next={nextCursor} label="Older keys" />
        </>
      ),
    };
  },
  forms: {
    async create({ ctx }, fields) {
      const input = fields.read(KeyCreate);
      const { name, key } = await call(ctx, "createKey", input);
      return {
        to: "/account/keys",
        said: `The key “${name}” is created. It is shown only once: copy it now.`,
        ...(key !== undefined && { secret: key }),
      };
    },
    async revoke({ ctx }, fields) {
      await call(ctx, "revokeKey", { id: fields.text("id") });
      return { to: "/account/keys", said: "The key is revoked: it no longer works." };
    },
  },
};
