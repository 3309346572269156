import type { System, SetupStep } from "../../protocol/api/system.ts";

/** What the steps are judged by. */
export type SetupFacts = Omit<System, "setup"> & {
  now: Date;
  timerRanAt: Date | null;
  hostsUp: number;
  sitePacks: number;
};

/** API keys and webhook addresses are checked with the key they were created under, which no stored value names. */
export const beforeOldKeysGo = ({ tokenKey, tokensUnderOldKeys }: System["secrets"]): string =>
  !tokensUnderOldKeys
    ? "No stored value needs the older keys any more: remove SECRET_KEYS_OLD."
    : tokenKey
      ? "No stored value needs the older keys, but API keys and webhook addresses that were created under one of them stop working without it: replace those, then remove SECRET_KEYS_OLD."
      : "No stored value needs the older keys, but API keys and webhook addresses that were created under them stop working without them: set TOKEN_KEY to the older key, then remove SECRET_KEYS_OLD.";

const timerLateMs = 5 * 60_000;
/** A reading of the processor's events this recent counts as complete. */
export const eventsLateMs = 15 * 60_000;

/** A step's title, whether customers need it, and what is to be done; null: it is done. */
type Step = { title: string; required: boolean; todo: (facts: SetupFacts) => string | null };

const steps: Record<SetupStep, Step> = {
  https: {
    title: "The service has an https address",
    required: true,
    todo: ({ siteUrl }) =>
      siteUrl.startsWith("https:")
        ? null
        : `SITE_URL is ${siteUrl}: set it to the service's public https address.`,
  },
  timer: {
    title: "The timer runs every minute",
    required: true,
    todo: ({ timerRanAt, now }) =>
      timerRanAt !== null && now.getTime() - timerRanAt.getTime() < timerLateMs
        ? null
        : "It has not run for five minutes: check the cron trigger of the Worker, and its log.",
  },
  host: {
    title: "A host is connected",
    required: true,
    todo: ({ hostsUp }) =>
      hostsUp > 0
        ? null
        : "Add a host (POST /hosts) and run its install command as root on a machine with Docker.",
  },
  packs: {
    title: "A pack for sites is on offer",
    required: true,
    todo: ({ sitePacks }) => (sitePacks > 0 ? null : "Create a pack (POST /packs), or activate one."),
  },
  dns: {
    title: "Sites' own names lead to their hosts",
    required: true,
    todo({ dns, sitesOrigin, hostsUp }) {
      if (dns.error !== null) return `The DNS provider refuses: ${dns.error}`;
      if (dns.conflicts.length > 0)
        return `${dns.conflicts.length} names have records that Berth did not create: remove them, or the sites.`;
      if (dns.provider === "none" && hostsUp > 1)
        return `With several hosts, each site needs its own record: set DNS_PROVIDER, so that Berth maintains them for ${sitesOrigin}.`;
      return null;
    },
  },
  certificate: {
    title: "Sites' own names have a certificate",
    required: false,
    todo: ({ dns }) =>
      dns.provider === "none"
        ? null
        : (dns.certificate?.error ??
          (dns.certificate?.notAfter
            ? null
            : "It has not been issued yet: wait a few minutes, then check the DNS provider.")),
  },
  mail: {
    title: "Mail is sent",
    required: true,
    todo: ({ mail }) =>
      mail.configured
        ? null
        : "Set MAIL_ENDPOINT, MAIL_TOKEN and MAIL_FROM: without mail, addresses are not confirmed, passwords not reset and owners not warned.",
  },
  payments: {
    title: "Payments take real money",
    required: true,
    todo: ({ payments }) =>
      payments.live
        ? null
        : payments.processor === "test"
          ? "Set PAYMENTS to stripe, with STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET: test payments charge nothing."
          : "STRIPE_SECRET_KEY is a test-mode key: set a live one.",
  },
  payment_events: {
    title: "The payment processor's events arrive",
    required: false,
    todo({ payments: { processor, lastEventAt, eventsReadAt }, siteUrl, now }) {
      if (processor === "test") return null;
      if (eventsReadAt !== null && Date.parse(eventsReadAt) <= now.getTime() - eventsLateMs)
        return `The processor's list of events has not been read to its end since ${eventsReadAt.slice(0, 16).replace("T", " ")} UTC. Until it is, nothing is voided, suspended or deleted for want of a payment, and no renewal is issued: check that STRIPE_SECRET_KEY may read events, and the Worker's log.`;
      return lastEventAt === null
        ? `None has arrived yet: add the webhook endpoint ${siteUrl}/webhooks/stripe in Stripe, and pay an invoice.`
        : null;
    },
  },
  backup_store: {
    title: "Backups can be stored",
    required: true,
    todo: ({ backupStore }) =>
      backupStore.error === null
        ? null
        : `The store does not respond: ${backupStore.error} Check the binding BACKUPS.`,
  },
  secrets: {
    title: "Secrets are under the current key",
    required: false,
    todo: ({ secrets }) =>
      secrets.underOldKeys.length > 0
        ? "Some are encrypted with an older key: run berth operator rotate-secrets before you remove it."
        : secrets.oldKeyIds.length > 0
          ? beforeOldKeysGo(secrets)
          : null,
  },
  assistant: {
    title: "The assistant has a model",
    required: false,
    todo: ({ assistant }) =>
      assistant.model === null
        ? "Set MODEL_URL, MODEL_NAME and MODEL_KEY; without them it accepts only commands."
        : null,
  },
};

/** What a new installation needs, in order. */
export const setupOf = (facts: SetupFacts): System["setup"] =>
  (Object.entries(steps) as [SetupStep, Step][]).map(([step, { title, required, todo }]) => {
    const what = todo(facts);
    return { step, title, required, done: what === null, todo: what };
  });
