import type { Child } from "hono/jsx";
import type { Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { Act } from "../kit/form.tsx";
import { Icon } from "../kit/icon.tsx";
import { Callout, Copy, Heading, Live, Status, Tabs, Time } from "../kit/parts.tsx";
import { QrCode } from "../kit/qr.tsx";
import type { Asked, View } from "../kit/screen.ts";
import { suspendedFor } from "../kit/viewer.ts";
import { siteWords } from "../kit/words.ts";

const tabs = [
  ["", "Overview"],
  ["deployments", "Deployments"],
  ["logs", "Logs"],
  ["metrics", "Metrics"],
  ["requests", "Requests"],
  ["variables", "Variables"],
  ["domains", "Domains"],
  ["data", "Data"],
  ["jobs", "Jobs"],
  ["settings", "Settings"],
] as const;
type SiteTab = (typeof tabs)[number][1];

/** A whole commit id, as short as people say it. */
export const ShortCommit = ({ commit }: { commit: string | null }) =>
  commit === null ? null : <code title={commit}>{commit.slice(0, 7)}</code>;

/** How a change of the settings takes effect: what was never paid for is first deployed by its payment. */
export const whenUsed = async ({ ctx, param }: Asked): Promise<string> =>
  (await call(ctx, "getSite", { id: param("id") })).status === "PENDING"
    ? "It is used from the first deployment, which starts with the payment."
    : "Deploy to use it.";

/** What serves visitors now, in a sentence. */
const Sentence = ({ site }: { site: Site }) => {
  const { currentDeployment: current, status } = site;
  if (status === "PENDING") return <>Built and started as soon as its first invoice is paid.</>;
  if (status === "SUSPENDED")
    return suspendedFor() === null ? (
      <>Not in service until its invoice is paid.</>
    ) : (
      <>Not in service while the account is suspended.</>
    );
  if (status === "DELETING") return <>It is being deleted.</>;
  if (current === null)
    return status === "DEPLOYING" ? <>Its first version is on the way.</> : <>No version has run yet.</>;
  const version = (
    <>
      version <a href={`/deployments/${current.id}`}>#{current.number}</a>{" "}
      <ShortCommit commit={current.commit} />
      {current.commitMessage !== null && ` “${firstLine(current.commitMessage)}”`}
    </>
  );
  if (status === "STOPPED") return <>Stopped. Starting it brings back {version}.</>;
  if (status === "FAILED") return <>Not in service; {version} ran last.</>;
  return (
    <>
      {version}, deployed <Time at={current.finishedAt} />
    </>
  );
};

const firstLine = (text: string): string => {
  const [line = ""] = text.split("\n");
  return line.length > 72 ? `${line.slice(0, 71)}…` : line;
};

type Action = { label: string; id: "deploy" | "rebuild" | "start" | "stop" | "restart" };
const deploy: Action = { label: "Deploy", id: "deploy" };
const start: Action = { label: "Start", id: "start" };
const stop: Action = { label: "Stop", id: "stop" };
const restart: Action = { label: "Restart", id: "restart" };
const rebuild: Action = { label: "Rebuild from scratch", id: "rebuild" };

/** Beside the name: the primary one first, then another; the rest are in the menu. */
const actionsIn: Record<Site["status"], { buttons: readonly Action[]; menu: readonly Action[] }> = {
  PENDING: { buttons: [], menu: [] },
  DEPLOYING: { buttons: [deploy], menu: [rebuild, stop] },
  RUNNING: { buttons: [deploy, restart], menu: [rebuild, stop] },
  STOPPED: { buttons: [start, deploy], menu: [rebuild] },
  FAILED: { buttons: [deploy, start], menu: [rebuild] },
  SUSPENDED: { buttons: [], menu: [] },
  DELETING: { buttons: [], menu: [] },
};

const Actions = ({ site }: { site: Site }) => {
  const { menu } = actionsIn[site.status];
  // What has never run cannot be started.
  const buttons = actionsIn[site.status].buttons.filter(
    ({ id }) => id !== "start" || site.currentDeployment !== null,
  );
  const here = `/sites/${site.id}`;
  const hasSource = site.deployType === "github" && buttons.length > 0;
  return (
    <>
      {buttons.map(({ id, label }, index) => (
        <Act id={id} action={here} label={label} about={site.name} kind={index === 0 ? "primary" : ""} />
      ))}
      {site.status !== "DELETING" && (
        <details class="menu" id="site-menu">
          <summary class="button" aria-label="More actions">
            <span aria-hidden="true">⋯</span>
          </summary>
          <div>
            {hasSource && <a href={`${here}/deployments#deploy`}>Deploy a commit …</a>}
            {menu.map(({ id, label }) => (
              <Act id={id} action={here} label={label} about={site.name} />
            ))}
            <a href={`${here}/clone`}>Copy this site …</a>
            <a href={`${here}/settings#delete`} class="bad">
              Delete …
            </a>
          </div>
        </details>
      )}
    </>
  );
};

/**
 * The frame of a site's pages: its name, what serves, its address, what can be done with it, and the tabs. The actions post to
 * the overview. `more` names the islands of the page and further ids that it is about.
 */
export function siteFrame(
  site: Site,
  current: SiteTab,
  body: Child,
  more: Pick<View, "islands" | "about"> = {},
): View {
  const here = `/sites/${site.id}`;
  const links = tabs.map(([path, label]) => ({ href: path === "" ? here : `${here}/${path}`, label }));
  const address = site.url.replace(/^https?:\/\//, "");
  return {
    title: current === "Overview" ? site.name : current,
    section: "sites",
    crumbs: [
      { label: "Sites", href: "/sites" },
      ...(current === "Overview" ? [] : [{ label: site.name, href: here }]),
    ],
    about: [site.id, ...(more.about ?? [])],
    state: siteWords[site.status],
    ...(more.islands && { islands: more.islands }),
    body: (
      <>
        <Live id="site-head">
          <Heading
            title={site.name}
            status={<Status {...siteWords[site.status]} />}
            below={
              <>
                <span class="copied">
                  <a href={site.url} rel="noreferrer">
                    {address}
                    <Icon name="external" />
                  </a>
                  <Copy text={site.url} of="address" />
                  {current === "Overview" && (
                    <details class="menu" id="address-qr">
                      <summary class="button">
                        QR<span class="hidden-text"> code of the address</span>
                      </summary>
                      <div>
                        <QrCode text={site.url} label={`QR code of ${address}`} />
                      </div>
                    </details>
                  )}
                </span>{" "}
                · <Sentence site={site} />
              </>
            }
          >
            <Actions site={site} />
          </Heading>
          {site.hostOffline && (
            <Callout tone="warn">
              <p>
                We cannot reach the machine that this site runs on at the moment. The site may still be
                serving; changes take effect when the machine responds again.
              </p>
            </Callout>
          )}
          {site.ingress.maintenance !== null && (
            <Callout tone="warn">
              <p>
                Maintenance is on: visitors see the maintenance page (503).{" "}
                <a href={`/sites/${site.id}/settings`}>End it in the settings.</a>
              </p>
            </Callout>
          )}
        </Live>
        <Tabs
          label={site.name}
          tabs={links}
          current={links.find(({ label }) => label === current)?.href ?? here}
        />
        {body}
      </>
    ),
  };
}
