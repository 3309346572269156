import type { Child } from "hono/jsx";
import type { Deployment } from "../../protocol/api/deployments.ts";
import type { SiteEvent, SiteSample } from "../../protocol/api/running.ts";
import type { Domain } from "../../protocol/api/domains.ts";
import type { EnvVariableShown, Site } from "../../protocol/api/sites.ts";
import { Charts } from "./charts.tsx";
import { Layout } from "./kit/layout.tsx";
import { day } from "./money.ts";
import { Status } from "./kit/parts.tsx";
import { siteWords } from "./kit/words.ts";

export const minute = (iso: string): string => `${iso.slice(0, 16).replace("T", " ")} UTC`;

export const isUnderWay = ({ status }: Pick<Deployment, "status">): boolean =>
  status === "QUEUED" || status === "BUILDING" || status === "STARTING";

/** `serves`: false for a site that is stopped or has crashed. */
export const DeploymentStatus = ({
  status,
  serves = true,
}: Pick<Deployment, "status"> & { serves?: boolean }) => (
  <span class={status === "LIVE" && serves ? "badge good" : status === "FAILED" ? "badge warn" : "badge"}>
    {status}
  </span>
);

/** Triggers as shown to the site's owner. */
export const askedBy: Record<Deployment["trigger"], string> = {
  payment: "started by the payment",
  api: "requested by you",
  webhook: "triggered by the deploy webhook",
  rollback: "a rollback",
  chat: "requested in the chat",
  renewal: "started by the renewal",
  move: "moved to another host",
};

/** A form with a button, and optionally fields, that performs one action on the site. */
const Act = ({ site, act, children }: { site: Site; act: string; children: Child }) => (
  <form method="post" action={`/sites/${site.id}`}>
    <input type="hidden" name="act" value={act} />
    {children}
  </form>
);

/** `of` distinguishes equal buttons for screen readers; the accessible name starts with the visible label. */
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
  start: "The site is starting …",
  stop: "The site is stopping …",
  restart: "The site is restarting: the new container takes over as soon as it responds.",
};
const isAwaited = (asked: string | undefined, { status }: Site): boolean =>
  (asked === "start" && status === "STOPPED") ||
  (asked === "stop" && (status === "RUNNING" || status === "DEPLOYING")) ||
  asked === "restart";

/** The total duration, including unsuccessful waiting for the new version. */
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
            label={deployment.imageKept ? "Roll back to this" : "Rebuild and roll back"}
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
      <strong>{domain.displayName}</strong>{" "}
      <span
        class={domain.status === "ACTIVE" ? "badge good" : domain.status === "ERROR" ? "badge warn" : "badge"}
      >
        {domain.status}
      </span>
      <dl>
        {domain.status === "PENDING_VERIFICATION" && (
          <>
            <dt>{domain.record.type}</dt>
            <dd>
              <code>{domain.record.name}</code> = <code>{domain.record.value}</code>
            </dd>
          </>
        )}
        <dt>Points at</dt>
        <dd>
          <code>{domain.target}</code>
        </dd>
        {domain.redirectTo !== null && (
          <>
            <dt>Redirects to</dt>
            <dd>
              <code>{domain.redirectTo}</code>
            </dd>
          </>
        )}
        {typeof domain.certificate?.notAfter === "string" && (
          <>
            <dt>Certificate</dt>
            <dd>
              {domain.certificate.issuer}, until {minute(domain.certificate.notAfter)}
            </dd>
          </>
        )}
      </dl>
      {domain.problems.map(({ message }) => (
        <p class="soft">{message}</p>
      ))}
      {domain.checkedAt !== null && (
        <p class="soft">
          Looked at {minute(domain.checkedAt)}
          {domain.nextCheckAt !== null && `, next ${minute(domain.nextCheckAt)}`}
        </p>
      )}
    </td>
    <td>
      {(domain.status === "ACTIVE" ? ["remove"] : ["verify", "remove"]).map((act) => (
        <Act site={site} act={`${act}-domain`}>
          <input type="hidden" name="domain" value={domain.domain} />
          <Button label={act === "verify" ? "Verify" : "Remove"} of={domain.domain} />
        </Act>
      ))}
    </td>
  </tr>
);

type Choice = { name: "builder" | "singlePage"; label: string; options: [value: string, text: string][] };
type Field = { label: string; placeholder?: string } & (
  | { name: "port" | "startTimeoutSeconds"; max: number }
  | {
      name:
        | "githubUrl"
        | "branch"
        | "image"
        | "rootDir"
        | "installCommand"
        | "outputDir"
        | "languageVersion"
        | "buildCommand"
        | "startCommand"
        | "releaseCommand"
        | "healthCheckPath";
    }
);
const ofSource: Record<Site["deployType"], Field[]> = {
  github: [
    { name: "githubUrl", label: "Repository" },
    { name: "branch", label: "Branch", placeholder: "the repository's default branch" },
    { name: "rootDir", label: "Root directory of the app", placeholder: "the repository's root" },
    { name: "installCommand", label: "Install command", placeholder: "detected from the repository" },
    { name: "buildCommand", label: "Build command", placeholder: "detected from the repository" },
    {
      name: "outputDir",
      label: "Folder to serve as a static site",
      placeholder: "detected from the repository",
    },
    {
      name: "languageVersion",
      label: "Version of the app's language",
      placeholder: "detected from the repository",
    },
  ],
  image: [{ name: "image", label: "Image" }],
  dockerfile: [],
};
const ofAll: Field[] = [
  { name: "startCommand", label: "Start command", placeholder: "from the image or the repository" },
  {
    name: "releaseCommand",
    label: "Release command, run once before a new version serves",
    placeholder: "from the Procfile",
  },
  { name: "port", label: "Port the app listens on", max: 65_535 },
  {
    name: "healthCheckPath",
    label: "Health check path",
    placeholder: "none: an open port is sufficient",
  },
  {
    name: "startTimeoutSeconds",
    label: "Start timeout in seconds",
    max: 600,
    placeholder: "the operator's default",
  },
];

const choices: Choice[] = [
  {
    name: "builder",
    label: "Build with",
    options: [
      ["", "the repository's Dockerfile if it has one"],
      ["detect", "what is detected, even if it has a Dockerfile"],
      ["dockerfile", "the repository's Dockerfile"],
    ],
  },
  {
    name: "singlePage",
    label: "Serve index.html for unknown paths of a static site",
    options: [
      ["", "detected from the repository"],
      ["true", "yes"],
      ["false", "no"],
    ],
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
    {site.deployType === "github" &&
      choices.map(({ name, label, options }) => (
        <label>
          {label}
          <select name={name}>
            {options.map(([value, text]) => (
              <option value={value} selected={value === String(site[name] ?? "")}>
                {text}
              </option>
            ))}
          </select>
        </label>
      ))}
    {site.deployType === "github" && (
      <label>
        Token for a private repository
        <input
          name="gitToken"
          type="password"
          maxlength={500}
          placeholder="leave empty to keep the current one"
          autocomplete="new-password"
        />
      </label>
    )}
    <button type="submit">Save settings</button>
  </Act>
);

const used = ({ cpuMilli, memoryMb, diskMb }: SiteSample): string =>
  `${(cpuMilli / 1000).toFixed(2)} cores, ${Math.round(memoryMb)} MB of memory${diskMb === null ? "" : `, ${Math.round(diskMb)} MB of disk`} in the last minute.`;

/** Replaces deployment ids with the numbers shown in the list above. */
const named = (detail: string, deployments: Deployment[]): string =>
  deployments.reduce((text, { id, number }) => text.replaceAll(id, `#${number}`), detail);

/** One site: its current state and its owner's everyday actions. */
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
  /** The cursor of the next page of deployments. */
  next: string | null;
  samples: SiteSample[];
  now: Date;
  events: SiteEvent[];
  /** The invoice to pay, if the site waits for payment. */
  payAt: string | null;
  /** The action that was just requested. */
  asked: string | undefined;
}) => (
  <Layout title={site.name} signedIn wide section="sites" about={[site.id]}>
    <h1>
      {site.name} <Status {...siteWords[site.status]} />
    </h1>
    <p>
      <a href={site.url}>{site.url.replace(/^https?:\/\//, "")}</a>
    </p>
    {site.hostOffline && (
      <p class="note warn">The host is currently unreachable; the site may still be running.</p>
    )}
    {isAwaited(asked, site) && (
      <p class="note" role="status">
        {under[asked ?? ""]}
      </p>
    )}
    {payAt && (
      <p class="note">
        {site.status === "PENDING"
          ? "The site will be built and started as soon as its invoice is paid."
          : "The site will start again as soon as its invoice is paid."}{" "}
        <a href={payAt}>Pay the invoice</a>
      </p>
    )}
    {site.status === "FAILED" && site.currentDeployment?.error && (
      <p class="note warn">{site.currentDeployment.error}</p>
    )}
    {events.findLast(({ kind }) => kind !== "disk_full" && kind !== "slowed")?.kind === "unhealthy" && (
      <p class="note warn">The health check is failing. See the events below.</p>
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
    <p class="soft">Changes take effect at the next restart or deployment.</p>
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
      <button type="submit">Set variable</button>
    </Act>
    <h2 id="domains">Domains</h2>
    <table class="rows">
      {site.domains.map((domain) => (
        <DomainRow site={site} domain={domain} />
      ))}
    </table>
    <Act site={site} act="add-domain">
      <label>
        Custom domain
        <input name="domain" required maxlength={253} placeholder="www.example.com" />
      </label>
      <button type="submit">Add domain</button>
    </Act>
    <h2 id="settings">Settings</h2>
    <p class="soft">Changes take effect at the next deployment.</p>
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
          This permanently deletes its containers, images, volumes and logs
          {site.paidUntil !== null && `; the remaining term until ${day(site.paidUntil)} is not refunded`}.
          Type its name to confirm.
          <input name="name" required autocomplete="off" pattern={site.name} />
        </label>
        <button type="submit">Delete {site.name}</button>
      </Act>
    </details>
  </Layout>
);
