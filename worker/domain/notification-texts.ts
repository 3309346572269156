import type { NotificationKind } from "../../protocol/states.ts";
import { nameOfKind } from "./notification-kinds.ts";

export type Notification = {
  kind: NotificationKind | "test";
  subject: string;
  text: string;
  /** The page about it. */
  link: string | null;
  resourceId: string | null;
};

/** Slack's own markup has three characters (https://docs.slack.dev/messaging/formatting-message-text). */
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Discord refuses messages of more than 2,000 characters. */
const maxSlackText = 1900;

/** For Slack, and what accepts its format: Mattermost, Rocket.Chat, Discord (at …/slack). A long text is cut. */
export function slackBody({ subject, text, link }: Notification): string {
  const head = `*${escaped(subject)}*\n`;
  const end = link === null ? "" : `\n<${link}>`;
  const room = maxSlackText - head.length - end.length;
  const whole = escaped(text);
  // Not within an escape or a surrogate pair.
  const cut = `${whole.slice(0, room - 1).replace(/&[a-z]*$|[\uD800-\uDBFF]$/, "")}…`;
  return JSON.stringify({ text: `${head}${whole.length > room ? cut : whole}${end}` });
}

export const webhookBody = (
  { kind, subject, text, link, resourceId }: Notification,
  { accountId, createdAt }: { accountId: string; createdAt: Date },
): string =>
  JSON.stringify({
    type: kind,
    timestamp: createdAt.toISOString(),
    data: { accountId, resourceId, subject, text, link },
  });

export const mailText = ({ kind, text, link }: Notification, settingsUrl: string): string =>
  `${text}${link === null ? "" : `\n\n${link}`}\n\n--\nYou receive this mail because you chose to be notified of ${nameOfKind[kind]}: ${settingsUrl}`;

export const testNotification: Notification = {
  kind: "test",
  subject: "Test notification",
  text: "Notifications arrive here.",
  link: null,
  resourceId: null,
};
