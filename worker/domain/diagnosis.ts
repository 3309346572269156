import type { Fix, SiteCheck, SiteDiagnosis, SiteProbed } from "../../protocol/api/diagnosis.ts";
import type { SiteHealth } from "../../protocol/api/running.ts";
import type { Site } from "../../protocol/api/sites.ts";
import type { DatabaseStatus } from "../../protocol/states.ts";

/** Everything that is looked at. */
export type SiteFacts = {
  site: Pick<
    Site,
    | "id"
    | "status"
    | "port"
    | "hostId"
    | "hostOffline"
    | "paidUntil"
    | "domains"
    | "currentDeployment"
    | "latestDeployment"
    | "url"
  >;
  unpaid: { id: string; token: string; dueAt: string } | null;
  /** Those linked to it. `invoiceId`: an unpaid one. */
  databases: {
    id: string;
    name: string;
    status: DatabaseStatus;
    error: string | null;
    invoiceId: string | null;
  }[];
  /** A sentence: its host could not be asked. */
  health: SiteHealth | string;
  /** Requests from outside: of the site's own address first, then of its verified domains. */
  probes: { name: string; probed: SiteProbed }[];
  /** The latest changes, newest first. */
  changes: { operation: string; at: string; actor: string; outcome: string }[];
};

type Finding = Omit<SiteDiagnosis["checks"][number], "check">;
const ok = (finding: string): Finding => ({ status: "ok", finding, fixes: [] });
const unknown = (finding: string): Finding => ({ status: "unknown", finding, fixes: [] });
const problem = (finding: string, ...fixes: Fix[]): Finding => ({ status: "problem", finding, fixes });

const act = (id: string, action: "start" | "restart" | "deploy", summary: string): Fix => ({
  summary,
  operation: "patchSite",
  input: { id, action },
});

/** Only a running site can be restarted; one that failed is started. */
const runAgain = ({ id, status }: SiteFacts["site"], what: string): Fix =>
  status === "FAILED" ? act(id, "start", `Start ${what}.`) : act(id, "restart", `Restart ${what}.`);

/** Less than this, and builds and databases of the host are in danger. */
const lowDiskMb = 2048;

const checks: { [Check in SiteCheck]: (facts: SiteFacts) => Finding } = {
  invoice({ site, unpaid }) {
    const pay = (why: string) =>
      problem(
        unpaid ? `${why} The invoice ${unpaid.id} is unpaid, due ${unpaid.dueAt}.` : why,
        ...(unpaid
          ? [{ summary: "Pay the invoice.", operation: "getInvoice", input: { id: unpaid.id } }]
          : []),
      );
    if (site.status === "PENDING") return pay("The site has never been paid for, so nothing was deployed.");
    if (site.status === "SUSPENDED")
      return unpaid
        ? pay("The paid term has ended, so the site was suspended.")
        : problem("The site is stopped because the account is suspended: ask the operator.");
    if (unpaid)
      return ok(`Paid until ${site.paidUntil}; the invoice ${unpaid.id} is open, due ${unpaid.dueAt}.`);
    return ok(`Paid until ${site.paidUntil ?? "an unknown time"}.`);
  },

  host({ site, health }) {
    if (site.hostId === null)
      return site.status === "PENDING"
        ? unknown("No host has the site yet.")
        : problem("No host has the site.");
    if (site.hostOffline)
      return problem(
        "The site's host is not connected: changes wait for it. Its containers may still be serving. Ask the operator.",
      );
    return typeof health === "string"
      ? unknown(`The host did not answer: ${health}`)
      : ok("The host answers.");
  },

  database({ databases }) {
    if (databases.length === 0) return ok("The site is linked to no database.");
    const absent = databases.filter(({ status }) => status !== "RUNNING" && status !== "PROVISIONING");
    if (absent.length > 0) return problem(absent.map(whyAbsent).join(" "), ...absent.flatMap(databaseFixes));
    const unready = databases.filter(({ status }) => status === "PROVISIONING").map(({ name }) => name);
    if (unready.length > 0) return unknown(`The database ${unready.join(", ")} is being created.`);
    return ok(databases.map(({ name }) => `${name} runs.`).join(" "));
  },

  deployment({ site }) {
    const { id, currentDeployment: current, latestDeployment: latest } = site;
    if (site.status === "STOPPED")
      return problem("The site was stopped.", act(id, "start", "Start the site."));
    if (latest?.status === "FAILED" && latest.id !== current?.id)
      return problem(
        `The latest deployment failed${current ? "; the previous version is in service" : ""}: ${latest.error ?? "no reason is known"}`,
        { summary: "See why it failed.", operation: "explainDeployment", input: { id: latest.id } },
      );
    if (current?.error)
      return problem(
        `The version ${site.status === "FAILED" ? "that ran last" : "in service"}: ${current.error}`,
        runAgain(site, "it"),
      );
    if (current === null)
      return site.status === "DEPLOYING"
        ? unknown("The first deployment is in progress.")
        : problem("No version of the site has run yet.", act(id, "deploy", "Deploy the site."));
    return ok(`Deployment ${current.id} is the version in service.`);
  },

  container({ site, health }) {
    if (typeof health === "string") return unknown("Only the host knows.");
    if (site.status === "STOPPED") return ok("None runs, because the site is stopped.");
    const { containers } = health;
    const serving = containers.filter(({ serves }) => serves);
    const dead =
      serving.find(({ running }) => !running) ??
      (serving.length === 0 ? containers.find(({ running }) => !running) : undefined);
    if (dead?.outOfMemory)
      return problem(
        "The app was killed because it used more memory than its pack has: choose a larger pack.",
      );
    if (dead)
      return problem(
        `The app is not running: it ended with exit code ${dead.exitCode} at ${dead.finishedAt} after ${dead.restarts} restarts.`,
        runAgain(site, "the site"),
      );
    if (serving.length === 0) return problem("The site has no container in service.");
    const restarts = Math.max(...serving.map((one) => one.restarts));
    if (serving.some((one) => one.outOfMemory))
      return problem(
        "The app was killed for using more memory than its pack has, and runs again: choose a larger pack.",
      );
    const often = restarts === 1 ? "once" : `${restarts} times`;
    if (restarts > 0) return problem(`The app runs, and was restarted ${often} after it exited.`);
    return ok(`${serving.length} of ${serving.length} containers run, since ${serving[0]?.startedAt}.`);
  },

  port({ site, health }) {
    if (typeof health === "string") return unknown("Only the host knows.");
    const running = health.containers.filter(({ serves, running: runs }) => serves && runs);
    if (running.length === 0) return unknown("No container runs.");
    for (const { listens, probe } of running) {
      const port = probe?.port ?? site.port;
      const own = listens.find((one) => one.port === port);
      if (own?.loopbackOnly)
        return problem(`The app listens on 127.0.0.1:${port} only: let it listen on 0.0.0.0.`);
      const others = listens.filter(({ loopbackOnly }) => !loopbackOnly).map((one) => one.port);
      if (!own && others.length > 0)
        return problem(`Nothing listens on port ${port}, but the app listens on ${others.join(", ")}.`, {
          summary: `Set the site's port to ${others[0]}, then deploy it.`,
          operation: "patchSite",
          input: { id: site.id, settings: { port: others[0] } },
        });
      if (!own) return problem(`Nothing listens on port ${port}.`);
    }
    return ok(`It listens on port ${running[0]?.probe?.port ?? site.port}.`);
  },

  health({ site, health }) {
    if (typeof health === "string") return unknown("Only the host knows.");
    const probed = health.containers.flatMap(({ serves, replica, probe }) =>
      serves && probe ? [{ replica, ...probe }] : [],
    );
    if (probed.length === 0) return unknown("No container could be probed.");
    const sick = probed.find(({ isHealthy }) => !isHealthy);
    if (sick)
      return problem(
        `The health check ${sick.path ?? "of the port"} of replica ${sick.replica}: it ${sick.answer}.`,
        act(site.id, "restart", "Restart the site."),
      );
    return ok(`${probed.length} probed: ${probed[0]?.answer} in ${probed[0]?.durationMs} ms.`);
  },

  route({ site, health }) {
    if (typeof health === "string") return unknown("Only the host knows.");
    const own = new URL(site.url).hostname;
    if (health.route === "none") return problem("The host routes no name to the site.");
    if (health.route === "stopped")
      return site.status === "STOPPED"
        ? ok("Visitors get the page of a stopped site.")
        : problem("Visitors get the page of a stopped site.", act(site.id, "start", "Start the site."));
    const missing = [
      own,
      ...site.domains.flatMap((one) => (one.status === "PENDING_VERIFICATION" ? [] : one.domain)),
    ].filter((name) => !health.hostnames.includes(name));
    if (missing.length > 0) return problem(`The host does not route ${missing.join(", ")} to the site yet.`);
    return ok(`Visitors of ${health.hostnames.join(", ")} reach the containers.`);
  },

  dns({ site, probes }) {
    const wrong = site.domains.flatMap((one) =>
      one.status === "PENDING_VERIFICATION" ? missingRecord(one) : one.problems.map(({ message }) => message),
    );
    const unanswered = probes.filter(({ probed }) => !probed.reachable && !isCertificate(probed.error));
    const silent = unanswered.filter(({ name }) => !isLocal(name));
    if (silent.length > 0)
      return problem(
        silent
          .map(({ name, probed }) => `${name} cannot be reached from outside: ${probed.error}.`)
          .concat(wrong)
          .join(" "),
      );
    if (wrong.length > 0) return problem(wrong.join(" "));
    if (probes.length === 0) return unknown("Nothing was requested from outside.");
    if (unanswered.length > 0)
      return unknown(
        `${unanswered.map(({ name }) => name).join(", ")} exists only on the host's own machine.`,
      );
    return ok(
      probes.map(({ name, probed }) => `${name} answers ${probed.status} in ${probed.ttfbMs} ms.`).join(" "),
    );
  },

  certificate({ probes }) {
    const bad = probes.filter(({ probed }) => isCertificate(probed.error));
    if (bad.length > 0) return problem(bad.map(({ name, probed }) => `${name}: ${probed.error}.`).join(" "));
    const secure = probes.filter(({ probed }) => probed.tls);
    if (secure.length > 0) return ok(`Valid for ${secure.map(({ name }) => name).join(", ")}.`);
    return unknown("No answer over HTTPS.");
  },

  disk({ health }) {
    if (typeof health === "string") return unknown("Only the host knows.");
    const free = health.diskFreeMb;
    if (free === null) return unknown("The host cannot see its disk.");
    if (free < lowDiskMb)
      return problem(`The host has only ${free} MB of free disk space: ask the operator.`);
    return ok(`The host has ${Math.floor(free / 1024)} GB of free disk space.`);
  },

  changes({ changes }) {
    if (changes.length === 0) return ok("Nothing was changed recently.");
    return ok(
      `The latest changes: ${changes.map(({ operation, at, actor, outcome }) => `${operation} by ${actor} at ${at}${outcome === "done" ? "" : ` (${outcome})`}`).join("; ")}.`,
    );
  },
};

type LinkedDatabase = SiteFacts["databases"][number];

function whyAbsent({ name, status, error }: LinkedDatabase): string {
  if (status === "PENDING") return `The database ${name} is not paid for, so it does not exist yet.`;
  if (status === "SUSPENDED")
    return `The database ${name} is suspended: its paid term has ended, or the account is suspended.`;
  if (status === "FAILED") return `The database ${name} failed: ${error ?? "no reason is known"}`;
  return `The database ${name} is ${status === "STOPPED" ? "stopped" : "being deleted"}.`;
}

function databaseFixes({ id, name, status, invoiceId }: LinkedDatabase): Fix[] {
  if (status === "FAILED" || status === "STOPPED")
    return [{ summary: `Start ${name}.`, operation: "patchDatabase", input: { id, action: "start" } }];
  return invoiceId === null
    ? []
    : [{ summary: `Pay the invoice of ${name}.`, operation: "getInvoice", input: { id: invoiceId } }];
}

const missingRecord = ({ domain, record }: Site["domains"][number]): string =>
  `${domain} is not verified: set the ${record.type} record ${record.name} to ${record.value}, then verify it.`;
/** RFC 6761, 6.3: resolvers on other machines, and in containers, need not know it. */
const isLocal = (name: string): boolean => /(?:^|\.)localhost$/.test(name);
const isCertificate = (error: string | null): boolean => /certificate|TLS|SSL/i.test(error ?? "");

/** Judges the facts in the order in which a visitor's request would meet them. */
export function diagnose(facts: SiteFacts): SiteDiagnosis {
  const found = (Object.keys(checks) as SiteCheck[]).map((check) => ({ check, ...checks[check](facts) }));
  const first = found.find(({ status }) => status === "problem");
  const open = found.filter(({ status }) => status === "unknown").map(({ check }) => check);
  return {
    healthy: first === undefined,
    summary:
      first?.finding ??
      (open.length > 0 ? `No problem was found; not checked: ${open.join(", ")}.` : "No problem was found."),
    checks: found,
  };
}
