import { isNetwork, maxAllowed } from "../../../protocol/api/public-access.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { Check, Form, Submit, TextArea } from "../kit/form.tsx";
import { Callout, Card, Code, Copied, Status } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseFrame, databasePath, openDatabase, told } from "./frame.tsx";

const State = ({ publicAccess: { enabled, applied, host, port, error } }: Database) => (
  <dl>
    <dt>State</dt>
    <dd>
      {error !== null ? (
        <Status tone="bad" label="Not applied" />
      ) : !applied ? (
        <Status tone="busy" label="Being applied" />
      ) : enabled ? (
        <Status tone="good" label="Open to the listed networks" />
      ) : (
        <Status tone="soft" label="Closed: only your sites can reach it" />
      )}
      {error !== null && <p class="bad">{error}</p>}
    </dd>
    {enabled && host !== null && port !== null && (
      <>
        <dt>Address</dt>
        <dd>
          <Copied text={`${host}:${port}`} of="public address" />
        </dd>
      </>
    )}
  </dl>
);

const commands = {
  postgresql: 'psql "$DATABASE_URL"   # with ca.pem in the current folder',
  mysql: "mariadb --ssl-ca=ca.pem --ssl-verify-server-cert --host=… --port=… --user=… --password",
  redis: 'redis-cli --tls --cacert ca.pem -u "$REDIS_URL"',
} as const;

export const databaseAccess: Screen = {
  path: "/databases/:id/access",
  async show({ ctx, param }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const { publicAccess } = database;
    const credentials = publicAccess.enabled
      ? await told(call(ctx, "getDatabaseCredentials", { id: database.id }))
      : null;
    const authority =
      credentials && "value" in credentials
        ? credentials.value.publicAccess?.certificateAuthority
        : undefined;
    return databaseFrame(
      opened,
      "access",
      <div class="halves">
        <Card title="From outside">
          <div class="body">
            <div id="access-state" data-live="">
              <State {...database} />
            </div>
            {publicAccess.enabled && publicAccess.allow.some((network) => network.endsWith("/0")) && (
              <Callout tone="warn">
                <p>Any address may connect. The password is then the only protection.</p>
              </Callout>
            )}
            <Form id="access">
              <Check
                name="enabled"
                label="Allow connections from the internet"
                checked={publicAccess.enabled}
              />
              <TextArea
                name="allow"
                label="Addresses and networks that may connect"
                rows={5}
                value={publicAccess.allow.join("\n")}
                placeholder={"203.0.113.7\n198.51.100.0/24"}
                hint={`One per line, at most ${maxAllowed}. Connections use TLS. Clients removed from the list are disconnected immediately.`}
              />
              <Submit label="Save" kind="primary" />
            </Form>
          </div>
        </Card>
        <Card title="Certificate">
          <div class="body">
            {authority === undefined ? (
              <p class="soft">
                Once the database is open to the outside, the certificate that clients need to verify it is
                shown here.
              </p>
            ) : (
              <>
                <p>
                  Save it as <code>ca.pem</code>, and connect with it:
                </p>
                <Code text={commands[database.type]} of="command" />
                <p class="form-end">
                  The address with its password is on{" "}
                  <a href={databasePath(database.id, "connect")}>Connect</a>.
                </p>
                <Code text={authority} of="certificate" />
              </>
            )}
          </div>
        </Card>
      </div>,
    );
  },
  forms: {
    async access({ ctx, param }, fields) {
      const allow = fields
        .text("allow")
        .split(/[\s,]+/)
        .filter(Boolean);
      const wrong = allow.find((network) => !isNetwork(network));
      if (wrong !== undefined)
        throw invalid("allow", `“${wrong}” is not an address or a network such as 203.0.113.0/24`);
      if (new Set(allow).size !== allow.length) throw invalid("allow", "names an address twice");
      if (allow.length > maxAllowed) throw invalid("allow", `has more than ${maxAllowed} lines`);
      const enabled = fields.text("enabled") === "true";
      await call(ctx, "patchDatabase", { id: param("id"), publicAccess: { enabled, allow } });
      return {
        to: databasePath(param("id"), "access"),
        said: enabled
          ? "The list is saved, and applied within seconds."
          : "The database is closed to the outside.",
      };
    },
  },
};
