import {
  ChannelCreate,
  ChannelPatch,
  type Channel,
  type Delivery,
} from "../../../protocol/api/notifications.ts";
import {
  notificationKinds,
  type ChannelType,
  type DeliveryStatus,
  type NotificationKind,
} from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Check, Field, Form, Select, Submit, typedInto } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Empty, Head, Heading, Pager, Status, Tabs, Time } from "../kit/parts.tsx";
import type { Fields, Screen } from "../kit/screen.ts";
import type { Word } from "../kit/words.ts";
import { accountTabs } from "./tabs.ts";

const path = "/account/notifications";

const kindWords: Record<NotificationKind, string> = {
  deploy_failed: "A deployment fails",
  crash_loop: "An app keeps crashing",
  unhealthy: "A site or database is not healthy",
  limit_near: "Disk or memory is nearly full",
  backup_failed: "A backup fails",
  invoice_due: "An invoice is due",
  certificate: "A domain has no valid certificate",
};
const typeWords: Record<ChannelType, string> = {
  mail: "Email to your account's address",
  webhook: "Webhook (signed requests to your address)",
  slack: "Slack, or a chat that accepts Slack's format",
};
const deliveryWords: Record<DeliveryStatus, Word> = {
  pending: { tone: "busy", label: "To be sent" },
  sent: { tone: "good", label: "Sent" },
  failed: { tone: "bad", label: "Not sent" },
};

const wordOf = ({ enabled, disabledReason }: Channel): Word =>
  enabled
    ? { tone: "good", label: "On" }
    : disabledReason === null
      ? { tone: "soft", label: "Off" }
      : { tone: "bad", label: "Turned off" };

const OneChannel = ({ channel }: { channel: Channel }) => {
  const { id, name } = channel;
  return (
    <Card
      id={id}
      title={
        <span class="row">
          {name} <Status {...wordOf(channel)} />
        </span>
      }
    >
      <div class="body">
        <p>
          <span class="soft">{typeWords[channel.type]}:</span> {channel.target}
        </p>
        {channel.disabledReason !== null && <p class="warn">{channel.disabledReason}</p>}
        <p class="soft small">{channel.kinds.map((kind) => kindWords[kind]).join(" · ")}</p>
        <div class="buttons">
          <Act id="test" of={id} label="Send a test" about={name} values={{ id }} />
          {channel.enabled ? (
            <Act id="disable" of={id} label="Turn off" about={name} values={{ id }} />
          ) : (
            <Act id="enable" of={id} label="Turn on" about={name} values={{ id }} />
          )}
        </div>
        <details open={typedInto(`change:${id}`) !== undefined}>
          <summary>Change what is sent</summary>
          <Form id="change" of={id}>
            <input type="hidden" name="id" value={id} />
            <Kinds chosen={channel.kinds} />
            <Submit label="Save" of={name} />
          </Form>
        </details>
        <details>
          <summary class="bad">Delete this channel</summary>
          <p>Nothing more is sent through it, and the list of what it sent is deleted.</p>
          <Act id="delete" of={id} label="Delete" about={name} kind="danger" values={{ id }} />
        </details>
      </div>
    </Card>
  );
};

const Kinds = ({ chosen }: { chosen: readonly NotificationKind[] }) => (
  <fieldset>
    <legend>Tell me when</legend>
    {notificationKinds.map((kind) => (
      <Check name={`kind-${kind}`} label={kindWords[kind]} checked={chosen.includes(kind)} />
    ))}
  </fieldset>
);
/** @throws AppError invalid_request if none is ticked */
const kindsIn = (fields: Fields): NotificationKind[] => {
  const kinds = notificationKinds.filter((kind) => fields.text(`kind-${kind}`) === "true");
  if (kinds.length === 0) throw invalid("kinds", "tick at least one");
  return kinds;
};

const DeliveryRow = ({ delivery, of }: { delivery: Delivery; of: Channel | undefined }) => (
  <tr>
    <td>
      {delivery.subject}
      <div class="soft small">{of?.name ?? "a channel of an earlier page"}</div>
    </td>
    <td>
      <Status {...deliveryWords[delivery.status]} />
      {(delivery.error !== null || delivery.httpStatus !== null) && (
        <div class="soft small any-break">{delivery.error ?? `answered ${delivery.httpStatus}`}</div>
      )}
    </td>
    <td class="end soft">
      <Time at={delivery.createdAt} />
      {delivery.nextAttemptAt !== null && (
        <div class="small">
          next attempt <Time at={delivery.nextAttemptAt} />
        </div>
      )}
    </td>
  </tr>
);

export const notifications: Screen = {
  path,
  async show({ ctx, query }) {
    const [{ data: channels }, deliveries] = await Promise.all([
      call(ctx, "listNotificationChannels", { limit: 100 }),
      call(ctx, "listNotificationDeliveries", { limit: 25, ...cursorIn(query, "delivery") }),
    ]);
    return {
      title: "Notifications",
      section: "settings",
      crumbs: [{ label: "Settings", href: "/account" }],
      about: ["account"],
      body: (
        <>
          <Heading title="Settings" />
          <Tabs label="Settings" tabs={accountTabs} current={path} />
          <div class="split">
            <div class="stack">
              {channels.length === 0 ? (
                <Card>
                  <Empty
                    title="No channels yet"
                    text="You always get mail about money, access, failing domains and failing backups. Add a channel to hear about failed deployments and crashes too."
                  />
                </Card>
              ) : (
                channels.map((channel) => <OneChannel channel={channel} />)
              )}
              <Card title="What was sent" id="deliveries" live>
                {deliveries.data.length === 0 ? (
                  <p class="body soft">Nothing was sent in the last 30 days.</p>
                ) : (
                  <table class="roomy">
                    <Head columns={["About", "Outcome", ["When", "end"]]} />
                    <tbody>
                      {deliveries.data.map((delivery) => (
                        <DeliveryRow
                          delivery={delivery}
                          of={channels.find(({ id }) => id === delivery.channelId)}
                        />
                      ))}
                    </tbody>
                  </table>
                )}
              </Card>
              <Pager path={path} next={deliveries.nextCursor} label="Older notifications" />
            </div>
            <Card title="New channel">
              <div class="body">
                <Form id="create">
                  <Select name="type" label="Send to" value="mail" options={Object.entries(typeWords)} />
                  <Field
                    name="url"
                    label="Address"
                    type="url"
                    hint="The address of the webhook or of a Slack incoming webhook. Not needed for email."
                    placeholder="https://"
                    maxlength={2000}
                  />
                  <Field name="name" prose label="Name" hint="Optional." maxlength={60} />
                  <Kinds chosen={notificationKinds} />
                  <Submit label="Add channel" kind="primary" />
                </Form>
              </div>
            </Card>
          </div>
        </>
      ),
    };
  },
  forms: {
    async create({ ctx }, fields) {
      const [type, url, name] = [fields.text("type"), fields.text("url"), fields.text("name").trim()];
      if (type === "mail" && url !== "") throw invalid("url", "not needed for email: leave it empty");
      const input = parsed(ChannelCreate, {
        type,
        ...(name !== "" && { name }),
        ...(type !== "mail" && { url }),
        kinds: kindsIn(fields),
      });
      const made = await call(ctx, "createNotificationChannel", input);
      return {
        to: path,
        said:
          typeof made.secret === "string"
            ? `The channel “${made.name}” is added. Its messages are signed with this secret, which is shown only once: copy it now.`
            : `The channel “${made.name}” is added. Send a test to check that it works.`,
        ...(typeof made.secret === "string" && { secret: made.secret }),
      };
    },
    async change({ ctx }, fields) {
      const patch = parsed(ChannelPatch, { kinds: kindsIn(fields) });
      await call(ctx, "patchNotificationChannel", { id: fields.text("id"), ...patch });
      return { to: path, said: "The channel's notifications are changed." };
    },
    async test({ ctx }, fields) {
      const { status, error } = await call(ctx, "testNotificationChannel", { id: fields.text("id") });
      return status === "sent"
        ? { to: path, said: "The test was sent and accepted." }
        : { to: path, said: `The test did not arrive. ${error ?? ""}`.trim(), tone: "bad" };
    },
    async enable({ ctx }, fields) {
      const { name } = await call(ctx, "patchNotificationChannel", { id: fields.text("id"), enabled: true });
      return { to: path, said: `“${name}” is turned on.` };
    },
    async disable({ ctx }, fields) {
      const { name } = await call(ctx, "patchNotificationChannel", { id: fields.text("id"), enabled: false });
      return { to: path, said: `“${name}” is turned off: nothing is sent through it.` };
    },
    async delete({ ctx }, fields) {
      await call(ctx, "deleteNotificationChannel", { id: fields.text("id") });
      return { to: path, said: "The channel is deleted." };
    },
  },
};
