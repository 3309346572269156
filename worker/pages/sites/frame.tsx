import type { Child } from "hono/jsx";
import type { Site } from "../../../protocol/api/sites.ts";
import { Heading, Live, Status, Tabs } from "../kit/parts.tsx";
import type { View } from "../kit/screen.ts";
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
export type SiteTab = (typeof tabs)[number][1];

/** The frame of a site's pages. */
export function siteFrame(
  site: Site,
  current: SiteTab,
  body: Child,
  more: Pick<View, "islands" | "about"> = {},
): View {
  const here = `/sites/${site.id}`;
  const links = tabs.map(([path, label]) => ({ href: path === "" ? here : `${here}/${path}`, label }));
  return {
    title: current,
    section: "sites",
    crumbs: [
      { label: "Sites", href: "/sites" },
      { label: site.name, href: here },
    ],
    about: [site.id, ...(more.about ?? [])],
    ...(more.islands && { islands: more.islands }),
    body: (
      <>
        <Live id="site-head">
          <Heading
            title={site.name}
            status={<Status {...siteWords[site.status]} />}
            below={<a href={site.url}>{site.url.replace(/^https?:\/\//, "")}</a>}
          />
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
