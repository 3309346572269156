import type { DeploymentExplanation, Fix } from "../../../protocol/api/diagnosis.ts";
import { SiteDeploy, type Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { splitLastLines } from "../../domain/last-lines.ts";
import { parsed } from "../../domain/parsed.ts";
import { isErrorLine } from "../../../protocol/error-line.ts";
import { plain } from "../../../protocol/redact.ts";
import { Act } from "../kit/form.tsx";
import { Card } from "../kit/parts.tsx";
import type { Asked, Done, Fields } from "../kit/screen.ts";
import { inLabels } from "../kit/setting-labels.ts";

type Told = {
  headline: string;
  rest: string;
  /** The line of the app's that says why; null: none does. */
  line: string | null;
  hasLines: boolean;
};

/** The error's first sentence, and what follows it. */
export function headlineOf(error: string): Told {
  const text = plain(error).trim();
  const split = splitLastLines(text);
  const said = inLabels(split.said);
  const lines = split.lines?.split(/ \| |\n/) ?? [];
  // What else is wrong with a build follows from its first error; an app may go on after an error.
  const line = text.startsWith("The build ") ? lines.find(isErrorLine) : lines.findLast(isErrorLine);
  const [, headline = said, rest = ""] = /^([^]{20,}?[.!?:])\s+(?=[A-Z])([^]*)$/.exec(said) ?? [];
  return {
    headline: headline.replace(/[:\s]+$/, "."),
    rest: rest.trim(),
    line: line ?? null,
    hasLines: split.lines !== null,
  };
}

const settingLabels: Record<string, string> = {
  port: "the port",
  startTimeoutSeconds: "the start time",
  healthCheckPath: "the health check",
};

/** Without a ref, a site's branch may have a newer commit than the deployment had. */
export const deployAgain = ({ deployType }: Pick<Site, "deployType">, ref: unknown): string =>
  deployType === "github" && typeof ref !== "string" ? "Deploy the newest commit" : "Deploy again";

/** What a button that applies the fix says; null: it has no button. */
function labelOf({ operation, input, summary }: Fix, again = "Deploy again"): string | null {
  if (operation === "rollbackSite")
    return summary.replace(/^Roll back to deployment (\d+).*/, "Roll back to #$1");
  if (operation !== "patchSite") return null;
  if (input["action"] === "deploy") return again;
  const settings = input["settings"];
  const [[name, value] = []] = Object.entries(settings ?? {}) as [string, unknown][];
  if (name === "port") return `Set port to ${String(value)} and deploy`;
  if (name === "startTimeoutSeconds") return `Give it ${String(value)} seconds and deploy`;
  if (name === "healthCheckPath") return "Accept any answer and deploy";
  return name === undefined ? null : `Change ${settingLabels[name] ?? name} and deploy`;
}

/** Pages on which causes are put right. */
export const placesOf: Record<string, (here: string) => [href: string, label: string]> = {
  repository_unreadable: (here) => [`${here}/settings#source`, "Check the address and the token"],
  source_missing: (here) => [`${here}/settings#source`, "Check the branch"],
  app_exited: (here) => [`${here}/settings#run`, "Edit the start command"],
  app_ended: (here) => [`${here}/settings#run`, "Edit the start command"],
  development_server: (here) => [`${here}/settings#run`, "Edit the start command"],
  release_failed: (here) => [`${here}/settings#run`, "Edit the release command"],
  build_failed: (here) => [`${here}/settings#build`, "Edit the build settings"],
  build_timeout: (here) => [`${here}/settings#build`, "Edit the build settings"],
  not_detected: (here) => [`${here}/settings#build`, "Edit the build settings"],
  missing_variable: (here) => [`${here}/variables`, "Set the variable"],
  out_of_memory: (here) => [`${here}/settings#plan`, "Change the plan"],
  out_of_disk: (here) => [`${here}/settings#plan`, "Change the plan"],
};

export const Why = ({ told: { headline, rest, line } }: { told: Told }) => (
  <>
    <p>
      <strong>{headline}</strong>
    </p>
    {rest !== "" && <p>{rest}</p>}
    {line !== null && <pre>{line}</pre>}
  </>
);

/** Why a deployment failed, what serves meanwhile, and buttons for what is known to help. `log`: where its log is, unless beside it. */
export const FailureCard = ({
  site,
  explained: { deployment, error, lastLines, fixes, cause },
  log,
}: {
  site: Site;
  explained: DeploymentExplanation;
  log?: string;
}) => {
  const here = `/sites/${site.id}`;
  const told = headlineOf(error ?? "The deployment failed.");
  const { currentDeployment: current } = site;
  const serves = current !== null && current.id !== deployment.id && site.status === "RUNNING";
  const place = cause === null ? undefined : placesOf[cause.code]?.(here);
  const labelled = fixes.flatMap((fix, index) => {
    const label = labelOf(fix, deployAgain(site, fix.input["ref"]));
    return label === null ? [] : [{ label, index }];
  });
  return (
    <Card
      tone="fail"
      id="failure"
      title={
        <span class="bad">
          Deployment #{deployment.number} failed
          {serves &&
            ` · version #${current.number} ${current.number > deployment.number ? "serves now" : "still serves"}`}
        </span>
      }
    >
      <div class="body">
        <Why told={told} />
        <div class="buttons spaced">
          {labelled.map(({ label, index }, at) => (
            <Act
              id="fix"
              of={String(index)}
              action={here}
              label={label}
              kind={at === 0 ? "primary" : ""}
              values={{ deployment: deployment.id, fix: String(index) }}
            />
          ))}
          {place && (
            <a class="button" href={place[0]}>
              {place[1]}
            </a>
          )}
          {log !== undefined && (
            <a class="button" href={log}>
              Open the log
            </a>
          )}
          <a class="button" href={`/assistant?about=${deployment.id}`}>
            Ask the assistant
          </a>
        </div>
        {log !== undefined && lastLines.length > 0 && (
          <details id="last-lines" open={told.hasLines && told.line === null}>
            <summary>Last lines of the log</summary>
            <pre class="last-lines">{lastLines.slice(-15).map(plain).join("\n")}</pre>
          </details>
        )}
      </div>
    </Card>
  );
};

/** Applies a fix that the explanation of a deployment offers, and deploys if it was a setting. */
export async function applyFix(ctx: Ctx, deploymentId: string, index: number): Promise<Done> {
  const { fixes, deployment } = await call(ctx, "explainDeployment", { id: deploymentId });
  const fix = fixes[index];
  const { siteId, ref } = await call(ctx, "getDeployment", { id: deploymentId });
  if (!fix || labelOf(fix) === null)
    throw conflict(`Deployment #${deployment.number} no longer offers this fix. Reload the page.`);
  if (fix.operation === "rollbackSite") {
    const target = String(fix.input["deploymentId"]);
    const { deploymentId: made } = await call(ctx, "rollbackSite", { id: siteId, deploymentId: target });
    return { to: `/deployments/${made}` };
  }
  if ("settings" in fix.input)
    await call(ctx, "patchSite", { id: siteId, settings: fix.input["settings"] as object });
  else if ("packId" in fix.input) throw conflict("Change the plan on the site's settings page.");
  return deploy(ctx, siteId, ref === null ? {} : { ref });
}

/** Deploys, and leads to the deployment. */
export async function deploy(
  ctx: Ctx,
  id: string,
  how: { ref?: string; rebuild?: true } = {},
): Promise<Done> {
  const accepted = await call(ctx, "patchSite", { id, ...parsed(SiteDeploy, { action: "deploy", ...how }) });
  return "deploymentId" in accepted && accepted.deploymentId !== undefined
    ? { to: `/deployments/${accepted.deploymentId}` }
    : { to: `/sites/${id}`, said: "The deployment is under way." };
}

/** What the form of a deployment asks for: a branch or commit, and whether all is built anew. */
export function deployChosen({ ctx, param }: Asked, fields: Fields): Promise<Done> {
  const ref = fields.text("ref").trim();
  return deploy(ctx, param("id"), {
    ...(ref !== "" && { ref }),
    ...(fields.text("rebuild") === "true" && { rebuild: true }),
  });
}
