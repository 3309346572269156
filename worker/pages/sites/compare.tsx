import type { Deployment, DeploymentComparison } from "../../../protocol/api/deployments.ts";
import { call } from "../../api/call.ts";
import { AppError } from "../../domain/app-error.ts";
import { Callout, Card, Empty, Time } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";
import { askedBy, changeWords, DeploymentState, settingName, shownValue } from "./deployment-words.tsx";
import { ShortCommit, siteFrame } from "./frame.tsx";

const titleOf = ({ number, commit, commitMessage }: Deployment): string =>
  [`#${number}`, commit?.slice(0, 7), commitMessage?.split("\n")[0]?.slice(0, 60)].filter(Boolean).join(" ");

/** The two versions of a site that are compared; the address keeps them. */
export const ComparedForm = ({
  siteId,
  deployments,
  earlier = deployments[1]?.id,
  later = deployments[0]?.id,
}: {
  siteId: string;
  /** Newest first. */
  deployments: readonly Deployment[];
  earlier?: string | undefined;
  later?: string | undefined;
}) => (
  <form class="filters" method="get" action={`/sites/${siteId}/compare`}>
    {(
      [
        ["earlier", "Compare", earlier],
        ["later", "with", later],
      ] as const
    ).map(([name, label, value]) => (
      <label>
        <span>{label}</span>
        <select name={name}>
          {deployments.map((deployment) => (
            <option value={deployment.id} selected={deployment.id === value}>
              {titleOf(deployment)}
            </option>
          ))}
        </select>
      </label>
    ))}
    <button type="submit">Compare</button>
  </form>
);

type Compared = { differs: DeploymentComparison } | { problem: string } | null;

const notOfThisSite = "One of the two is not a version of this site: choose two from the list.";

async function compared({ ctx, query, param }: Asked): Promise<Compared> {
  const [id, deploymentId] = [query("earlier"), query("later")];
  if (id === undefined || deploymentId === undefined) return null;
  if (id === deploymentId) return { problem: "These are the same version: choose two different ones." };
  try {
    const differs = await call(ctx, "compareDeployments", { id, deploymentId });
    return differs.later.siteId === param("id") ? { differs } : { problem: notOfThisSite };
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "forbidden") throw error;
    return { problem: notOfThisSite };
  }
}

const Head = ({
  label,
  one,
  site,
}: {
  label: string;
  one: Deployment;
  site: Parameters<typeof DeploymentState>[0]["site"];
}) => (
  <th scope="col">
    <span class="soft">{label}</span> <a href={`/deployments/${one.id}`}>#{one.number}</a>{" "}
    <DeploymentState deployment={one} site={site} />
    <br />
    <span class="soft">
      by {askedBy(one)}, <Time at={one.createdAt} />
    </span>
  </th>
);

const Differences = ({
  differs,
  site,
}: {
  differs: DeploymentComparison;
  site: Parameters<typeof DeploymentState>[0]["site"];
}) => {
  const { earlier, later, settings, unknownSettings, environment } = differs;
  const isSame =
    !differs.commit && settings?.length === 0 && unknownSettings.length === 0 && environment.length === 0;
  return (
    <>
      <Card title="What differs" id="differences">
        <table class="compared">
          <thead>
            <tr>
              <th scope="col">What</th>
              <Head label="Earlier" one={earlier} site={site} />
              <Head label="Later" one={later} site={site} />
            </tr>
          </thead>
          <tbody>
            <tr>
              <td>{differs.commit ? "Source" : "Source: the same"}</td>
              {[earlier, later].map(({ commit, commitMessage }) => (
                <td>
                  {commit === null ? <span class="soft">not known</span> : <ShortCommit commit={commit} />}
                  {commitMessage !== null && <div class="soft">{commitMessage.split("\n")[0]}</div>}
                </td>
              ))}
            </tr>
            {(settings ?? []).map((one) => (
              <tr>
                <td>{settingName(one.setting)}</td>
                <td>
                  <code class="any-break">{shownValue(one.earlier)}</code>
                </td>
                <td>
                  <code class="any-break">{shownValue(one.later)}</code>
                </td>
              </tr>
            ))}
            {environment.map(({ key, change }) => (
              <tr>
                <td>
                  Variable <code class="any-break">{key}</code>
                </td>
                <td>{change === "added" ? "not set" : "set"}</td>
                <td>{change === "removed" ? "not set" : changeWords[change]}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {isSame && (
          <Empty
            title="Nothing differs"
            text="Both were made from the same source, with the same settings and variables."
          />
        )}
      </Card>
      {settings !== null && unknownSettings.length > 0 && (
        <Callout tone="plain">
          <p>
            Not known of one of the two, as what it was built from is no longer kept:{" "}
            {unknownSettings.map(settingName).join(", ")}.
          </p>
        </Callout>
      )}
      {settings === null && (
        <Callout tone="plain">
          <p>The settings of one of the two are unknown: it never reached a machine.</p>
        </Callout>
      )}
    </>
  );
};

/** Any two versions of a site side by side. */
export const siteCompare: Screen = {
  path: "/sites/:id/compare",
  async show(asked) {
    const { ctx, param, query } = asked;
    const id = param("id");
    const [site, { data }, result] = await Promise.all([
      call(ctx, "getSite", { id }),
      call(ctx, "listDeployments", { id, limit: 100 }),
      compared(asked),
    ]);
    const found = result && "differs" in result ? [result.differs.later, result.differs.earlier] : [];
    // One that is older than the list is in it all the same.
    const listed = [...data, ...found.filter((one) => data.every((known) => known.id !== one.id))];
    return siteFrame(
      site,
      "Deployments",
      <div class="stack">
        <h2>Compare two versions</h2>
        {listed.length < 2 ? (
          <Card>
            <Empty title="Nothing to compare" text="The site has fewer than two versions.">
              <a class="button" href={`/sites/${id}/deployments`}>
                Deployments
              </a>
            </Empty>
          </Card>
        ) : (
          <ComparedForm siteId={id} deployments={listed} earlier={query("earlier")} later={query("later")} />
        )}
        {result && "problem" in result && (
          <p class="callout bad" role="alert">
            {result.problem}
          </p>
        )}
        {result && "differs" in result && <Differences differs={result.differs} site={site} />}
      </div>,
    );
  },
};
