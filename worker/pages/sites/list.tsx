import type { Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { listed, ListPage } from "../kit/list-page.tsx";
import { Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import type { Keys } from "../kit/sort.tsx";
import { siteWords } from "../kit/words.ts";

/** What a site is made from, in a few words. */
const sourceOf = ({ githubUrl, image, deployType }: Site): string =>
  githubUrl ?? image ?? (deployType === "dockerfile" ? "a Dockerfile" : "");

const Row = ({ site }: { site: Site }) => (
  <tr>
    <td class="any-break">
      <a href={`/sites/${site.id}`}>
        <strong>{site.name}</strong>
      </a>
      <br />
      {site.currentDeployment === null ? (
        <span class="soft">not online yet</span>
      ) : (
        <a href={site.url} rel="noreferrer">
          {site.url.replace(/^https?:\/\//, "")}
        </a>
      )}
    </td>
    <td>
      <Status {...siteWords[site.status]} />
      {site.latestDeployment?.status === "FAILED" && site.status === "RUNNING" && (
        <div class="bad small">the last deployment failed</div>
      )}
    </td>
    <td class="wide-only soft any-break">{sourceOf(site)}</td>
    <td class="end soft">
      <Time at={site.createdAt} />
    </td>
  </tr>
);

const keys: Keys<Site> = {
  name: ({ name }) => name,
  state: ({ status }) => siteWords[status].label,
  source: sourceOf,
  created: ({ createdAt }) => createdAt,
};

export const siteList: Screen = {
  path: "/sites",
  async show({ ctx, query }) {
    const sites = await listed(query, "site", keys, (page) => call(ctx, "listSites", page));
    return {
      title: "Sites",
      section: "sites",
      about: ["account"],
      body: (
        <ListPage
          path="/sites"
          title="Sites"
          noun="site"
          about="A site is built from a Git repository, an image or a Dockerfile, and gets an address of its own."
          columns={[
            { label: "Site", by: "name" },
            { label: "State", by: "state" },
            { label: "Source", by: "source", class: "wide-only" },
            { label: "Created", by: "created", class: "end" },
          ]}
          listed={sites}
          row={(site) => <Row site={site} />}
        />
      ),
    };
  },
};
