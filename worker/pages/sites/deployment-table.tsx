import type { Child } from "hono/jsx";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import { duration } from "../../../protocol/duration.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { Act } from "../kit/form.tsx";
import { Card, Empty, Head, Time } from "../kit/parts.tsx";
import { askedBy, DeploymentState, isUnderWay, stepsOf, wholeMs } from "./deployment-words.tsx";
import { headlineOf } from "./failure.tsx";
import { ShortCommit } from "./frame.tsx";

/** What each step took, side by side. Decoration: the whole time stands beside it, the parts on the deployment's page. */
const Bar = ({ deployment, now }: { deployment: Deployment; now: Date }) => {
  const parts = stepsOf(deployment, now).filter(({ ms }) => ms !== null && ms > 0);
  const whole = Math.max(
    1,
    parts.reduce((sum, { ms }) => sum + (ms ?? 0), 0),
  );
  let left = 0;
  return (
    <svg class="took" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      {parts.map(({ name, ms, state }) => {
        const width = (100 * (ms ?? 0)) / whole;
        left += width;
        return (
          <rect
            class={state === "failed" ? "failed" : name}
            x={(left - width).toFixed(2)}
            width={width.toFixed(2)}
            height="6"
          />
        );
      })}
    </svg>
  );
};

const Row = ({ site, deployment, now }: { site: Site; deployment: Deployment; now: Date }) => {
  const { id, number, commit, commitMessage, ref, createdAt, error, waitsFor } = deployment;
  const ms = wholeMs(deployment);
  return (
    <tr>
      <td>
        <DeploymentState deployment={deployment} site={site} />
      </td>
      <td class="room">
        <a href={`/deployments/${id}`}>
          <strong>#{number}</strong>
        </a>{" "}
        <ShortCommit commit={commit} /> {ref !== null && <span class="chip long">{ref}</span>}
        {commitMessage !== null && <div class="soft one-line">{commitMessage.split("\n")[0]}</div>}
        {error !== null && <div class="bad small one-line">{headlineOf(error).headline}</div>}
        {waitsFor !== null && <div class="soft small">{waitsFor}</div>}
      </td>
      <td class="wide-only soft">{askedBy(deployment)}</td>
      <td class="wide-only one-row">
        <Bar deployment={deployment} now={now} /> <span class="soft">{ms === null ? "…" : duration(ms)}</span>
      </td>
      <td class="end soft">
        <Time at={createdAt} />
        {isUnderWay(deployment) && (
          <div>
            <Act id="cancel" action={`/deployments/${id}`} label="Cancel" about={`deployment ${number}`} />
          </div>
        )}
        {deployment.status === "SUPERSEDED" && deployment.canRollBack && (
          <div>
            <Act
              id="rollback"
              of={id}
              action={`/sites/${site.id}`}
              label={deployment.imageKept ? "Roll back" : "Rebuild and roll back"}
              about={`to deployment ${number}`}
              values={{ deployment: id }}
            />
          </div>
        )}
      </td>
    </tr>
  );
};

export const DeploymentTable = ({
  site,
  deployments,
  now,
  isFiltered = false,
  end,
}: {
  site: Site;
  deployments: readonly Deployment[];
  now: Date;
  /** Only some were asked for. */
  isFiltered?: boolean;
  end?: Child;
}) => (
  <Card title="Deployments" {...(end !== undefined && { end })}>
    {deployments.length === 0 ? (
      <Empty
        title={isFiltered ? "Nothing matches" : "No deployments yet"}
        text={
          isFiltered
            ? "No deployment of this site matches these filters."
            : site.status === "PENDING"
              ? "The first one starts as soon as the invoice is paid."
              : "Deploy the site to build its first version."
        }
      />
    ) : (
      <table class="roomy">
        <Head columns={["State", "Version", ["By", "wide-only"], ["Took", "wide-only"], ["When", "end"]]} />
        <tbody>
          {deployments.map((deployment) => (
            <Row site={site} deployment={deployment} now={now} />
          ))}
        </tbody>
      </table>
    )}
  </Card>
);
