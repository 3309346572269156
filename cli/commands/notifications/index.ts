import type { Input } from "../../../client/index.ts";
import { answered, paged } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { confirmed } from "../../context.ts";
import { usage } from "../../failure.ts";
import { fieldsFrom, pairsHelp } from "../../pairs.ts";
import { listed } from "../../shown.ts";
import { safe } from "../../terminal.ts";

const kindsHelp =
  "deploy_failed, crash_loop, unhealthy, limit_near, backup_failed, invoice_due or certificate";

const list = paged(
  command("list", "Where you are notified, and about what", "listNotificationChannels"),
).action(({ limit, cursor }) =>
  answered(
    "listNotificationChannels",
    { limit, cursor },
    listed("type", "name", "target", "kinds", "enabled", "id"),
  ),
);

const add = command(
  "add",
  "Be notified by mail, at an address of your own, or in a chat that accepts Slack's format",
  "createNotificationChannel",
)
  .argument("<type>", "mail, webhook or slack")
  .argument("<kinds...>", kindsHelp)
  .option("--to <address>", "of a webhook or a chat")
  .option("--name <name>")
  .action((type, kinds, { to, name }) => {
    if (!["mail", "webhook", "slack"].includes(type))
      throw usage(`${type} is not a type of channel.`, "Give mail, webhook or slack.");
    if (type !== "mail" && to === undefined)
      throw usage(`Where to? A ${type} channel needs an address.`, "Give it with --to https://…");
    return answered("createNotificationChannel", {
      type,
      kinds,
      ...(name !== undefined && { name }),
      ...(to !== undefined && { url: to }),
    } as Input<"createNotificationChannel">);
  });

const set = command("set", "Change a channel: name, url, kinds or enabled", "patchNotificationChannel")
  .argument("<channel>", "id")
  .argument("<field=value...>", `${pairsHelp}: enabled=false, kinds='["unhealthy"]'`)
  .action((id, pairs) => answered("patchNotificationChannel", { ...fieldsFrom(pairs), id }));

const test = command("test", "Send a test through a channel now", "testNotificationChannel")
  .argument("<channel>", "id")
  .action((id) => answered("testNotificationChannel", { id }));

const remove = command("delete", "Delete a channel", "deleteNotificationChannel")
  .argument("<channel>", "id")
  .action(async (id) => {
    await confirmed(`Delete ${safe(id)}?`);
    await answered("deleteNotificationChannel", { id });
  });

const deliveries = paged(
  command("deliveries", "Notifications sent or waiting to be sent", "listNotificationDeliveries"),
)
  .option("--channel <id>", "only through this one")
  .option("--status <status>", "pending, sent or failed")
  .action(({ limit, cursor, channel, status }) =>
    answered(
      "listNotificationDeliveries",
      { limit, cursor, channelId: channel, status: status as "sent" | undefined },
      listed("createdAt", "kind", "status", "subject", "attempts", "error", "id"),
    ),
  );

export const notifications = group("notifications", "Be told when something needs your attention", [
  list,
  add,
  set,
  test,
  remove,
  deliveries,
]);
