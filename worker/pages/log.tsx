import type { Deployment } from "../../protocol/api/deployments.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { Layout } from "./kit/layout.tsx";
import { askedBy, Cancel, DeploymentStatus, isUnderWay, minute } from "./site.tsx";

/** A page whose log is written while it is open; the lines replace `mark`. */
const Log = ({ mark }: { mark: string }) => (
  <div class="log" tabindex={0} role="log" aria-label="Log">
    <pre>{mark}</pre>
  </div>
);

export const DeploymentPage = ({ deployment, mark }: { deployment: Deployment; mark: string }) => (
  <Layout title={`Deployment ${deployment.number}`} signedIn wide>
    <h1>Deployment {deployment.number}</h1>
    <p>
      {deployment.commit && <code>{deployment.commit.slice(0, 7)} </code>}
      {deployment.commitMessage ?? askedBy[deployment.trigger]} · {minute(deployment.createdAt)}
    </p>
    {isUnderWay(deployment) ? (
      <div class="actions until-end">
        <DeploymentStatus status={deployment.status} />
        <Cancel deployment={deployment} />
      </div>
    ) : (
      <DeploymentEnd deployment={deployment} />
    )}
    <Log mark={mark} />
    <p class="links">
      <a href={`/sites/${deployment.siteId}`}>Back to the site</a>
    </p>
  </Layout>
);

/** Shown after the log if the connection was interrupted. */
export const CutOff = () => <p role="status">The log was interrupted here. Reload the page to continue.</p>;

/** The result, also shown when the deployment ends while its log is being read. */
export const DeploymentEnd = ({ deployment }: { deployment: Deployment }) => (
  <p class="ended" role="status">
    <DeploymentStatus status={deployment.status} />{" "}
    {deployment.error && <span class="warn">{deployment.error}</span>}
  </p>
);

export const SiteLogPage = ({ site, mark }: { site: Site; mark: string }) => (
  <Layout title={`Log of ${site.name}`} signedIn wide>
    <h1>Log of {site.name}</h1>
    <p>The live output of the site.</p>
    <Log mark={mark} />
    <p class="links">
      <a href={`/sites/${site.id}`}>Back to the site</a>
    </p>
  </Layout>
);
