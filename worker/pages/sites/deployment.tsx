import type { DeploymentExplanation } from "../../../protocol/api/diagnosis.ts";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import { duration } from "../../../protocol/duration.ts";
import { SiteSettings, type Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { readerOf } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { findWorking } from "../../services/accounts/find-working.ts";
import { Act } from "../kit/form.tsx";
import { CutOff, LogViewer, PlainLog } from "../kit/log-viewer.tsx";
import { Callout, Card, Head, Heading, Live, Status, Time } from "../kit/parts.tsx";
import type { Asked, Screen, Streamed } from "../kit/screen.ts";
import {
  askedBy,
  changeWords,
  DeploymentState,
  deploymentWord,
  isUnderWay,
  settingName,
  shownValue,
  stepsOf,
  wholeMs,
  type Step,
} from "./deployment-words.tsx";
import { deployAgain, FailureCard, headlineOf } from "./failure.tsx";
import { ShortCommit } from "./frame.tsx";

const stepWords: Record<Step["state"], Parameters<typeof Status>[0]> = {
  done: { tone: "good", label: "Done" },
  now: { tone: "busy", label: "Under way" },
  failed: { tone: "bad", label: "Failed" },
  perhaps: { tone: "soft", label: "If needed" },
  skipped: { tone: "soft", label: "Not needed" },
  ahead: { tone: "soft", label: "To come" },
  missed: { tone: "soft", label: "Not reached" },
};

/** What a deployment goes through, in one row. */
const Steps = ({ deployment, now }: { deployment: Deployment; now: Date }) => (
  <Card id="steps" live>
    <h2 class="hidden-text">Steps</h2>
    <ol class="track">
      {stepsOf(deployment, now).map(({ label, state, ms }) => (
        <li class={state}>
          <span>{label}</span>
          <span>
            <Status {...stepWords[state]} />
            <span class="soft small" {...(state === "now" && ms !== null && { "data-counts": String(ms) })}>
              {ms === null ? "" : duration(ms)}
            </span>
          </span>
        </li>
      ))}
    </ol>
  </Card>
);

/** What "use these again" can write back as it was. */
const restorable = ["port", "startCommand", "healthCheckPath", "replicas"];

/** After a rollback the site's settings are still the newer ones: the next deployment would take them. */
const Unapplied = ({
  deployment,
  explained: { unapplied },
}: {
  deployment: Deployment;
  explained: DeploymentExplanation;
}) =>
  unapplied.length === 0 ? null : (
    <Callout
      tone="warn"
      title={
        deployment.rollbackOf === null
          ? "The site's settings have changed since"
          : "Rolled back, but the site's settings still differ"
      }
    >
      <p>The next deployment uses the site's settings, not those that this version runs with.</p>
      <table class="plain">
        <Head columns={["Setting", "This version", "The site"]} />
        <tbody>
          {unapplied.map(({ setting, deployed, site }) => (
            <tr>
              <td>{settingName(setting)}</td>
              <td>
                <code>{shownValue(deployed)}</code>
              </td>
              <td>
                <code>{shownValue(site)}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="buttons">
        {unapplied.some(({ setting }) => restorable.includes(setting)) && (
          <Act id="settings" label="Use this version's settings again" />
        )}
        <a class="button" href={`/sites/${deployment.siteId}/settings`}>
          Open the settings
        </a>
      </div>
    </Callout>
  );

const compareWith = ({ siteId, id }: Deployment, earlier: string): string =>
  `/sites/${siteId}/compare?earlier=${earlier}&later=${id}`;

const Changed = ({
  deployment,
  explained: { changed, lastGood },
}: {
  deployment: Deployment;
  explained: DeploymentExplanation;
}) => {
  if (changed === null || lastGood === null) return null;
  const count = changed.environment.length + changed.settings.length + (changed.commit ? 1 : 0);
  return (
    <details class="fold" id="changed">
      <summary>
        Changed since #{lastGood.number}:{" "}
        {count === 0
          ? changed.unknownSettings.length > 0
            ? "nothing that is known"
            : "nothing"
          : `${count} ${count === 1 ? "thing" : "things"}`}
      </summary>
      <p>
        Compared with <a href={`/deployments/${lastGood.id}`}>deployment #{lastGood.number}</a>, the last one
        that worked.{" "}
        <a href={compareWith(deployment, lastGood.id)}>See the values, or compare with another</a>
      </p>
      <ul>
        {changed.commit && <li>the source</li>}
        {changed.settings.map((name) => (
          <li>{settingName(name)}</li>
        ))}
        {changed.unknownSettings.length > 0 && (
          <li class="soft">not known: {changed.unknownSettings.map(settingName).join(", ")}</li>
        )}
        {changed.environment.map(({ key, change }) => (
          <li>
            the variable <code>{key}</code> was {changeWords[change]}
          </li>
        ))}
      </ul>
    </details>
  );
};

/** The outcome in a sentence, for the top of the page and the end of a log without a script. */
const Outcome = ({ deployment, site }: { deployment: Deployment; site: Site }) => (
  <p class="ended" role="status">
    <DeploymentState deployment={deployment} site={site} />{" "}
    {deployment.error !== null && <span class="bad">{headlineOf(deployment.error).headline}</span>}
  </p>
);

async function streamedLog({ ctx }: Asked, deployment: Deployment): Promise<Streamed | null> {
  try {
    const events = await call(ctx, "getDeploymentLogs", {
      id: deployment.id,
      follow: "1",
      limit: 1000,
      cursor: 0,
    });
    if (!(events instanceof ReadableStream)) return null;
    const last = async () => {
      if (!isUnderWay(deployment)) return "";
      // The session may have ended while the log was read.
      const working = await findWorking(ctx, [readerOf(ctx)]);
      if (working.size === 0) return <CutOff />;
      const ended = await call(ctx, "getDeployment", { id: deployment.id });
      const site = await call(ctx, "getSite", { id: ended.siteId });
      return isUnderWay(ended) ? <CutOff /> : <Outcome deployment={ended} site={site} />;
    };
    return { mark: ctx.newMark(), events, last };
  } catch (error) {
    // Too many readers: the page is shown without the log.
    if (error instanceof AppError && error.code === "conflict") return null;
    throw error;
  }
}

/** One deployment while it happens and afterwards: outcome, steps, what changed, the log. */
export const deploymentPage: Screen = {
  path: "/deployments/:id{dep_[0-9a-z]+}",
  async show(asked) {
    const { ctx, param, query } = asked;
    const deployment = await call(ctx, "getDeployment", { id: param("id") });
    const isPlain = query("plain") === "1";
    const [site, explained, streamed] = await Promise.all([
      call(ctx, "getSite", { id: deployment.siteId }),
      call(ctx, "explainDeployment", { id: deployment.id }),
      isPlain ? streamedLog(asked, deployment) : null,
    ]);
    const { number, commit, commitMessage, ref, createdAt, status, id, waitsFor } = deployment;
    const here = `/sites/${site.id}`;
    const address = site.url.replace(/^https?:\/\//, "");
    const isCurrent = site.currentDeployment?.id === id;
    const whole = wholeMs(deployment);
    const { currentDeployment: current } = site;
    const serves = site.status === "RUNNING" || site.status === "DEPLOYING";
    return {
      title: `Deployment #${number}`,
      section: "sites",
      crumbs: [
        { label: "Sites", href: "/sites" },
        { label: site.name, href: here },
        { label: "Deployments", href: `${here}/deployments` },
      ],
      about: isPlain ? [] : [site.id, id],
      state: deploymentWord({ deployment, site }),
      islands: isPlain ? [] : ["log"],
      ...(streamed && { streamed }),
      body: (
        <>
          <div class="sticky">
            <Live id="outcome">
              <Heading
                title={`${site.name} #${number}`}
                status={<DeploymentState deployment={deployment} site={site} />}
                below={
                  <>
                    <ShortCommit commit={commit} /> {ref !== null && <span class="chip long">{ref}</span>}{" "}
                    {commitMessage !== null && `“${commitMessage.split("\n")[0] ?? ""}” · `}
                    by {askedBy(deployment)}, <Time at={createdAt} />
                    {whole !== null && <> · took {duration(whole)}</>}
                    {isCurrent && site.status === "RUNNING" && (
                      <>
                        {" "}
                        · <a href={site.url}>{address}</a>
                      </>
                    )}
                    {isUnderWay(deployment) && current?.error === null && serves && (
                      <> · version #{current.number} serves until this one takes over</>
                    )}
                  </>
                }
              >
                {isUnderWay(deployment) && <Act id="cancel" label="Cancel" about={`deployment ${number}`} />}
                {status === "SUPERSEDED" && deployment.canRollBack && (
                  <Act
                    id="rollback"
                    label={deployment.imageKept ? "Roll back to this" : "Rebuild and roll back"}
                    about={`deployment ${number}`}
                    kind="primary"
                  />
                )}
                {(status === "FAILED" || status === "CANCELLED" || status === "LIVE") &&
                  !["PENDING", "SUSPENDED", "DELETING"].includes(site.status) && (
                    <Act
                      id="redeploy"
                      label={deployAgain(site, ref)}
                      about={site.name}
                      kind={status === "FAILED" ? "primary" : ""}
                    />
                  )}
              </Heading>
            </Live>
          </div>
          <div class="stack">
            <Live id="notices">
              {waitsFor !== null && (
                <Callout tone="busy">
                  <p>{waitsFor}</p>
                </Callout>
              )}
              {status === "FAILED" && <FailureCard site={site} explained={explained} />}
              {isCurrent && <Unapplied deployment={deployment} explained={explained} />}
            </Live>
            <Steps deployment={deployment} now={ctx.now()} />
            <Changed deployment={deployment} explained={explained} />
            <section id="log" aria-label="Log">
              {streamed ? (
                <PlainLog mark={streamed.mark} />
              ) : isPlain ? (
                <p class="note">
                  Too many readers are following this log. Close one of them, then reload the page.
                </p>
              ) : (
                <LogViewer
                  stream={`/api/v1/deployments/${id}/logs`}
                  kind="recorded"
                  name={`${site.name}-${number}`}
                  took={deployment.durations}
                  withoutScript={`/deployments/${id}?plain=1#log`}
                />
              )}
            </section>
          </div>
        </>
      ),
    };
  },
  forms: {
    async cancel({ ctx, param }) {
      const { id } = await call(ctx, "cancelDeployment", { id: param("id") });
      return { to: `/deployments/${id}` };
    },
    async rollback({ ctx, param }) {
      const { siteId, id } = await call(ctx, "getDeployment", { id: param("id") });
      const { deploymentId } = await call(ctx, "rollbackSite", { id: siteId, deploymentId: id });
      return { to: `/deployments/${deploymentId}` };
    },
    async redeploy({ ctx, param }) {
      const { siteId, ref } = await call(ctx, "getDeployment", { id: param("id") });
      const made = await call(ctx, "patchSite", {
        id: siteId,
        action: "deploy",
        ...(ref !== null && { ref }),
      });
      return {
        to: "deploymentId" in made ? `/deployments/${made.deploymentId ?? ""}` : `/sites/${siteId}`,
      };
    },
    async settings({ ctx, param }) {
      const { siteId } = await call(ctx, "getDeployment", { id: param("id") });
      const { unapplied } = await call(ctx, "explainDeployment", { id: param("id") });
      const settings = parsed(
        SiteSettings,
        Object.fromEntries(
          unapplied
            .filter(({ setting }) => restorable.includes(setting))
            .map(({ setting, deployed }) => [setting, deployed]),
        ),
      );
      await call(ctx, "patchSite", { id: siteId, settings });
      return {
        to: `/deployments/${param("id")}`,
        said: "The site has this version's settings again. Nothing was restarted.",
      };
    },
  },
};
