import type { Child } from "hono/jsx";
import type { Deployment } from "../../protocol/api/deployments.ts";
import type { SiteEvent, SiteSample } from "../../protocol/api/running.ts";
import type { Domain, EnvVariableShown, Site } from "../../protocol/api/sites.ts";
import { Charts } from "./charts.tsx";
import { Layout } from "./layout.tsx";
import { day } from "./money.ts";
import { SiteStatus } from "./sites.tsx";

export const minute = (iso: string): string => `${iso.slice(0, 16).replace("T", " ")} UTC`;

export const isUnderWay = ({ status }: Pick<Deployment, "status">): boolean =>
  status === "QUEUED" || status === "BUILDING" || status === "STARTING";

/** `serves`: not a site that is stopped, or that crashed. */
export const DeploymentStatus = ({
  status,
  serves = true,
}: Pick<Deployment, "status"> & { serves?: boolean }) => (
  <span class={status === "LIVE" && serves ? "badge good" : status === "FAILED" ? "badge warn" : "badge"}>
    {status}
  </span>
);

/** As whoever owns the site would say it. */
export const askedBy: Record<Deployment["trigger"], string> = {
  payment: "after the payment",
  api: "asked for by you",
  webhook: "by the deploy webhook",
  rollback: "a rollback",
  chat: "asked for in the chat",
  renewal: "after the renewal",
  move: "a move to another host",
};

/** A form of one button, or of fields and a button, that does one thing with the site. */
const Act = ({ site, act, children }: { site: Site; act: string; children: Child }) => (
  <form method="post" action={`/sites/${site.id}`}>
    <input type="hidden" name="act" value={act} />
    {children}
  </form>
);

/** `of` is what several such buttons of a page differ by; what is read out begins with what is seen. */
const Button = ({ label, of }: { label: string; of?: string }) => (
  <button class="small" type="submit" {...(of !== undefined && { "aria-label": `${label}: ${of}` })}>
    {label}
  </button>
);

const actionsIn: Record<Site["status"], readonly string[]> = {
  PENDING: [],
  DEPLOYING: ["deploy", "stop"],
  RUNNING: ["deploy", "restart", "stop"],
  STOPPED: ["start", "deploy"],
  FAILED: ["deploy", "start"],
  SUSPENDED: [],
  DELETING: [],
};
const labels: Record<string, string> = { deploy: "Deploy", restart: "Restart", stop: "Stop", start: "Start" };

const under: Record<string, string> = {
  start: "It is being started …",
  stop: "It is being stopped …",
  restart: "It is being restarted: the new container takes over as soon as it answers.",
};
const isAwaited = (asked: string | undefined, { status }: Site): boolean =>
  (asked === "start" && status === "STOPPED") ||
  (asked === "stop" && (status === "RUNNING" || status === "DEPLOYING")) ||
  asked === "restart";
const isMoving = ({ status }: Site): boolean => status === "DEPLOYING" || status === "DELETING";

/** All of it, what a new version was waited for in vain too. */
const seconds = ({ startedAt, finishedAt }: Deployment): string =>
  startedAt === null || finishedAt === null
    ? ""
    : ` · ${((Date.parse(finishedAt) - Date.parse(startedAt)) / 1000).toFixed(1)} s`;

const DeploymentRow = ({ site, deployment }: { site: Site; deployment: Deployment }) => (
  <tr>
    <td>
      <a href={`/deployments/${deployment.id}`}>#{deployment.number}</a>{" "}
      <DeploymentStatus
        status={deployment.status}
        serves={site.status === "RUNNING" || site.status === "DEPLOYING"}
      />
      <br />
      <span class="soft">
        {deployment.commit && <code>{deployment.commit.slice(0, 7)} </code>}
        {deployment.commitMessage ?? askedBy[deployment.trigger]} · {minute(deployment.createdAt)}
        {seconds(deployment)}
      </span>
      {deployment.error && <p class="warn soft">{deployment.error}</p>}
      {deployment.waitsFor && <p class="soft">{deployment.waitsFor}</p>}
    </td>
    <td>
      {isUnderWay(deployment) && <Cancel deployment={deployment} />}
      {deployment.status === "SUPERSEDED" && deployment.canRollBack && (
        <Act site={site} act="rollback">
          <input type="hidden" name="deploymentId" value={deployment.id} />
          <Button
            label={deployment.imageKept ? "Roll back to it" : "Build it again and roll back"}
            of={`deployment ${deployment.number}`}
          />
        </Act>
      )}
    </td>
  </tr>
);

export const Cancel = ({ deployment }: { deployment: Deployment }) => (
  <form method="post" action={`/deployments/${deployment.id}/cancel`}>
    <Button label="Cancel" of={`deployment ${deployment.number}`} />
  </form>
);

const VariableRow = ({ site, variable }: { site: Site; variable: EnvVariableShown }) => (
  <tr>
    <td>
      <code>{variable.key}</code>
      <br />
      <span class="soft">
        {variable.encrypted ? "secret" : variable.value} {variable.scope !== "both" && `· ${variable.scope}`}
      </span>
    </td>
    <td>
      <Act site={site} act="unset">
        <input type="hidden" name="key" value={variable.key} />
        <Button label="Remove" of={variable.key} />
      </Act>
    </td>
  </tr>
);

const DomainRow = ({ site, domain }: { site: Site; domain: Domain }) => (
  <tr>
    <td>
      <strong>{domain.domain}</strong>{" "}
      <span class={domain.status === "verified" ? "badge good" : "badge"}>{domain.status}</span>
      <dl>
        {domain.status === "pending" && (
          <>
            <dt>TXT</dt>
            <dd>
              <code>{domain.record.name}</code> = <code>{domain.record.value}</code>
            </dd>
          </>
        )}
        <dt>Points at</dt>
        <dd>
          <code>{domain.target}</code>
        </dd>
      </dl>
    </td>
    <td>
      {(domain.status === "pending" ? ["verify", "remove"] : ["remove"]).map((act) => (
        <Act site={site} act={`${act}-domain`}>
          <input type="hidden" name="domain" value={domain.domain} />
          <Button label={act === "verify" ? "Verify" : "Remove"} of={domain.domain} />
        </Act>
      ))}
    </td>
  </tr>
);

type Field = { label: string; placeholder?: string } & (
  | { name: "port" | "startTimeoutSeconds"; max: number }
  | {
      name:
        | "githubUrl"
        | "branch"
        | "image"
        | "rootDir"
        | "buildCommand"
        | "startCommand"
        | "releaseCommand"
        | "healthCheckPath";
    }
);
const ofSource: Record<Site["deployType"], Field[]> = {
  github: [
    { name: "githubUrl", label: "Repository" },
    { name: "branch", label: "Branch", placeholder: "the repository's default" },
    { name: "rootDir", label: "Folder of the app", placeholder: "the repository's root" },
    { name: "buildCommand", label: "Build command", placeholder: "as the repository's files say" },
  ],
  image: [{ name: "image", label: "Image" }],
  dockerfile: [],
};
const ofAll: Field[] = [
  { name: "startCommand", label: "Start command", placeholder: "as the image or the files say" },
  {
    name: "releaseCommand",
    label: "Release command, run once before a new version serves",
    placeholder: "as the Procfile says",
  },
  { name: "port", label: "Port the app listens on", max: 65_535 },
  {
    name: "healthCheckPath",
    label: "Path of the health check",
    placeholder: "none: an open port is enough",
  },
  {
    name: "startTimeoutSeconds",
    label: "Seconds that the app may take to start",
    max: 600,
    placeholder: "the operator's default",
  },
];

const SettingsForm = ({ site }: { site: Site }) => (
  <Act site={site} act="settings">
    {[...ofSource[site.deployType], ...ofAll].map(({ label, ...field }) => (
      <label>
        {label}
        <input
          {...field}
          value={String(site[field.name] ?? "")}
          required={field.name === "port" || field.name === "image" || field.name === "githubUrl"}
          autocomplete="off"
          {...("max" in field ? { type: "number", min: 1 } : { maxlength: 2000, spellcheck: false })}
        />
      </label>
    ))}
    {site.deployType === "github" && (
      <label>
        Token for a private repository
        <input
          name="gitToken"
          type="password"
          maxlength={500}
          placeholder="leave empty to keep the present one"
          autocomplete="new-password"
        />
      </label>
    )}
    <button type="submit">Save the settings</button>
  </Act>
);

const used = ({ cpuMilli, memoryMb, diskMb }: SiteSample): string =>
  `${(cpuMilli / 1000).toFixed(2)} cores, ${Math.round(memoryMb)} MB of memory${diskMb === null ? "" : `, ${Math.round(diskMb)} MB of disk`} in the last minute.`;

/** Deployments by their number, as they are listed above. */
const named = (detail: string, deployments: Deployment[]): string =>
  deployments.reduce((text, { id, number }) => text.replaceAll(id, `#${number}`), detail);

/** One site: what it does now, and all that its owner does with it every day. */
export const SitePage = ({
  site,
  deployments,
  next,
  samples,
  now,
  events,
  payAt,
  asked,
}: {
  site: Site;
  deployments: Deployment[];
  /** Where the list of them goes on. */
  next: string | null;
  samples: SiteSample[];
  now: Date;
  events: SiteEvent[];
  /** Where it is paid, when it waits for that. */
  payAt: string | null;
  /** The action that was just asked for. */
  asked: string | undefined;
}) => (
  <Layout
    title={site.name}
    signedIn
    wide
    refreshSeconds={isAwaited(asked, site) ? 2 : isMoving(site) ? 5 : null}
  >
    <h1>
      {site.name} <SiteStatus status={site.status} />
    </h1>
    <p>
      <a href={site.url}>{site.url.replace(/^https?:\/\//, "")}</a>
    </p>
    {site.hostOffline && <p class="note warn">Its host cannot be reached now; the site may still answer.</p>}
    {isAwaited(asked, site) && (
      <p class="note" role="status">
        {under[asked ?? ""]}
      </p>
    )}
    {payAt && (
      <p class="note">
        {site.status === "PENDING"
          ? "It is built and started as soon as it is paid."
          : "It runs again as soon as it is paid."}{" "}
        <a href={payAt}>Pay its invoice</a>
      </p>
    )}
    {site.status === "FAILED" && site.currentDeployment?.error && (
      <p class="note warn">{site.currentDeployment.error}</p>
    )}
    {events.findLast(({ kind }) => kind !== "disk_full" && kind !== "slowed")?.kind === "unhealthy" && (
      <p class="note warn">Its health check fails: see the events.</p>
    )}
    {site.status === "RUNNING" && samples.slice(-1).map((last) => <p class="soft">{used(last)}</p>)}
    <div class="actions">
      {actionsIn[site.status].map((act) => (
        <Act site={site} act={act}>
          <Button label={labels[act] ?? act} />
        </Act>
      ))}
      {site.hostId !== null && <a href={`/sites/${site.id}/log`}>Log</a>}
    </div>
    <h2 id="deployments">Deployments</h2>
    {deployments.length === 0 && <p>None yet.</p>}
    <table class="rows">
      {deployments.map((deployment) => (
        <DeploymentRow site={site} deployment={deployment} />
      ))}
    </table>
    {next !== null && (
      <p class="links">
        <a href={`/sites/${site.id}?cursor=${encodeURIComponent(next)}#deployments`}>Older deployments</a>
      </p>
    )}
    {samples.length > 0 && <Charts samples={samples} now={now} />}
    <h2 id="variables">Variables</h2>
    <p class="soft">Changes are used from the next restart or deployment on.</p>
    <table class="rows">
      {site.envVariables.map((variable) => (
        <VariableRow site={site} variable={variable} />
      ))}
    </table>
    <Act site={site} act="set">
      <label>
        Name
        <input name="key" required maxlength={200} pattern="[A-Za-z_][A-Za-z0-9_]*" autocomplete="off" />
      </label>
      <label>
        Value
        <textarea name="value" rows={2} maxlength={32_768} autocomplete="off" spellcheck={false} />
      </label>
      <label>
        Available to
        <select name="scope">
          <option value="">unchanged, or both if the variable is new</option>
          <option value="build">builds only</option>
          <option value="runtime">the running site only</option>
          <option value="both">both</option>
        </select>
      </label>
      <label class="check">
        <input type="checkbox" name="encrypted" value="true" /> Secret: never shown again, masked in logs
      </label>
      <button type="submit">Set the variable</button>
    </Act>
    <h2 id="domains">Domains</h2>
    <table class="rows">
      {site.domains.map((domain) => (
        <DomainRow site={site} domain={domain} />
      ))}
    </table>
    <Act site={site} act="add-domain">
      <label>
        Domain of your own
        <input name="domain" required maxlength={253} placeholder="www.example.com" />
      </label>
      <button type="submit">Add the domain</button>
    </Act>
    <h2 id="settings">Settings</h2>
    <p class="soft">Changes are used from the next deployment on.</p>
    <details>
      <summary>Commands, port, health check</summary>
      <SettingsForm site={site} />
    </details>
    <h2>Events</h2>
    {events.length === 0 && <p>None yet.</p>}
    <table class="rows">
      {events.toReversed().map(({ at, kind, detail }) => (
        <tr>
          <td>
            {kind} <span class="soft">{minute(at)}</span>
            <br />
            <span class="soft">{named(detail, deployments)}</span>
          </td>
        </tr>
      ))}
    </table>
    <details>
      <summary>Delete this site</summary>
      <Act site={site} act="delete">
        <label>
          Its containers, images, volumes and log are deleted for good
          {site.paidUntil !== null && `; what is paid until ${day(site.paidUntil)} is not given back`}. Type
          its name to delete it.
          <input name="name" required autocomplete="off" pattern={site.name} />
        </label>
        <button type="submit">Delete {site.name}</button>
      </Act>
    </details>
  </Layout>
);
