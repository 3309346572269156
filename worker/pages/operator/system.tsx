import type { Host } from "../../../protocol/api/hosts.ts";
import { SecretsRotate, type SecretsRotated } from "../../../protocol/api/secrets.ts";
import type { System } from "../../../protocol/api/system.ts";
import { call } from "../../api/call.ts";
import { parsed } from "../../domain/parsed.ts";
import { beforeOldKeysGo } from "../../domain/setup-steps.ts";
import { Act } from "../kit/form.tsx";
import { allOf } from "../kit/paging.ts";
import { Card, Status } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { inLabels } from "../kit/setting-labels.ts";
import { counted } from "../kit/words.ts";
import { operatorFrame, searched } from "./frame.tsx";

/** Each re-encrypts up to a hundred values, one query each. */
const pagesAtOnce = 5;

/** What runs, and how it is upgraded: the service cannot do that itself. */
const Version = ({ system, hosts }: { system: System; hosts: readonly Host[] }) => {
  const others = hosts.filter(
    ({ agentVersion }) => agentVersion !== null && agentVersion !== system.agentVersion,
  );
  return (
    <Card title="Version and upgrade" id="version">
      <div class="body">
        <dl>
          <dt>Control plane</dt>
          <dd>{system.version}</dd>
          <dt>Agents</dt>
          <dd>
            {hosts.length === 0
              ? "no hosts yet"
              : others.length === 0
                ? `${system.agentVersion ?? "none"} on every host`
                : others.map((host) => (
                    <div>
                      <a href={`/operator/hosts#${host.id}`}>{host.name}</a>: {host.agentVersion}
                    </div>
                  ))}
          </dd>
        </dl>
        <details class="more">
          <summary>Upgrade</summary>
          <ol>
            <li>
              In a checkout of the newer version, apply its migrations:{" "}
              <code>npx wrangler d1 migrations apply berth --remote</code>
            </li>
            <li>
              Deploy it: <code>npm run deploy</code>
            </li>
            <li>
              Agents then reconnect and update automatically. Sites and databases keep running meanwhile.{" "}
              {others.length > 0 && "Those above have not done so yet."}
            </li>
          </ol>
        </details>
      </div>
    </Card>
  );
};

/** What runs, how it is set up, and what can be checked of it. */
export const operatorSystem: Screen = {
  path: "/operator/system",
  async show({ ctx, query }) {
    const system = await call(ctx, "getSystem", {});
    const hosts = await allOf((page) => call(ctx, "listHosts", page));
    const from = query("rotate");
    return operatorFrame(
      "/operator/system",
      <div class="split">
        <Card title="Setup">
          <table>
            {system.setup.map(({ title, done, required, todo }) => (
              <tr>
                <td>
                  <Status
                    {...(done
                      ? { tone: "good", label: "Done" }
                      : required
                        ? { tone: "bad", label: "Needed" }
                        : { tone: "warn", label: "Open" })}
                  />
                </td>
                <td>
                  <b>{inLabels(title)}</b>
                  {todo !== null && <div class="soft">{inLabels(todo)}</div>}
                </td>
              </tr>
            ))}
          </table>
        </Card>
        <div class="stack">
          <Version system={system} hosts={hosts} />
          <Card title="Installation">
            <dl>
              <dt>Address</dt>
              <dd>{system.siteUrl}</dd>
              <dt>Sites</dt>
              <dd>{system.sitesOrigin}</dd>
              <dt>Sign-up</dt>
              <dd>{system.signUp === "open" ? "open to everybody" : "closed"}</dd>
              <dt>Payments</dt>
              <dd>
                {system.payments.processor === "stripe"
                  ? `Stripe${system.payments.live ? "" : ", test mode"}`
                  : "the embedded test processor"}
              </dd>
              <dt>Assistant</dt>
              <dd>{system.assistant.model ?? "no model: it accepts commands"}</dd>
              <dt>Backups</dt>
              <dd>{system.backupStore.error ?? "the store responds"}</dd>
            </dl>
          </Card>
          <Card title="Payments">
            <div class="body">
              <p class="soft">
                {system.payments.processor === "stripe"
                  ? "Checks that Stripe knows the key, and the webhook that reports payments."
                  : "The embedded test processor needs no setup and moves no money."}
              </p>
              <div class="form-end">
                <Act id="payments" label="Check the payments" />
              </div>
            </div>
          </Card>
          <Card title="Mail">
            <div class="body">
              <p class="soft">
                {!system.mail.configured
                  ? "No mail service is set up."
                  : system.mail.from === null
                    ? "A mail service is set up."
                    : `Sent as ${system.mail.from}.`}
              </p>
              <div class="form-end">
                <Act id="mail" label="Send me a test" />
              </div>
            </div>
          </Card>
          <Card title="Secrets">
            <div class="body">
              <p>
                Under key <code>{system.secrets.keyId}</code>.{" "}
                {system.secrets.underOldKeys.length === 0
                  ? "Nothing is under an older key."
                  : `Under older keys: ${system.secrets.underOldKeys.map(({ place, rows }) => `${rows} of ${place}`).join(", ")}.`}
              </p>
              {(system.secrets.underOldKeys.length > 0 || from !== undefined) && (
                <div class="form-end">
                  <Act
                    id="rotate"
                    label={from === undefined ? "Re-encrypt them" : "Continue"}
                    values={{ cursor: from ?? "" }}
                  />
                </div>
              )}
              {system.secrets.underOldKeys.length === 0 && system.secrets.oldKeyIds.length > 0 && (
                <p class="soft small">{beforeOldKeysGo(system.secrets)}</p>
              )}
            </div>
          </Card>
        </div>
      </div>,
    );
  },
  forms: {
    async payments({ ctx }) {
      const { problems } = await call(ctx, "checkPayments", {});
      return problems.length === 0
        ? { to: "/operator/system", said: "The payment processor is set up: its key and its webhook work." }
        : { to: "/operator/system", said: problems.join(" "), tone: "bad" };
    },
    async rotate({ ctx }, fields) {
      let cursor: string | null = fields.text("cursor");
      let count = 0;
      const unreadable: string[] = [];
      // As many as one request may do; the rest is left to the next one.
      for (let page = 0; page < pagesAtOnce && cursor !== null; page++) {
        const done: SecretsRotated = await call(
          ctx,
          "rotateSecrets",
          parsed(SecretsRotate, cursor === "" ? {} : { cursor }),
        );
        count += done.resealed;
        unreadable.push(...done.unreadable);
        cursor = done.nextCursor;
      }
      const words = [
        `${counted(count, "value is", "values are")} re-encrypted under the current key.`,
        ...(unreadable.length > 0
          ? [`No key decrypts ${unreadable.slice(0, 10).join(", ")}: add the key to SECRET_KEYS_OLD.`]
          : []),
        ...(cursor === null ? [] : ["There are more."]),
      ];
      return {
        to: searched("/operator/system", { rotate: cursor ?? "" }),
        said: words.join(" "),
        ...(unreadable.length > 0 && { tone: "bad" }),
      };
    },
    async mail({ ctx }) {
      const { to } = await call(ctx, "testMail", {});
      return { to: "/operator/system", said: `A mail is on its way to ${to}.` };
    },
  },
};
