import type { Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { Card, Empty, Heading, Pager, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { siteWords } from "../kit/words.ts";

/** What a site is made from, in a few words. */
const sourceOf = ({ githubUrl, image, deployType }: Site): string =>
  githubUrl ?? image ?? (deployType === "dockerfile" ? "a Dockerfile" : "");

const Row = ({ site }: { site: Site }) => (
  <tr>
    <td>
      <a href={`/sites/${site.id}`}>
        <strong>{site.name}</strong>
      </a>
      <br />
      {site.currentDeployment === null ? (
        <span class="soft">{sourceOf(site)}</span>
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
    <td class="wide-only soft">{sourceOf(site)}</td>
    <td class="end soft">
      <Time at={site.createdAt} />
    </td>
  </tr>
);

export const siteList: Screen = {
  path: "/sites",
  async show({ ctx, query }) {
    const cursor = query("cursor");
    const { data, nextCursor } = await call(ctx, "listSites", {
      limit: 100,
      ...(cursor !== undefined && { cursor }),
    });
    return {
      title: "Sites",
      section: "sites",
      about: ["account"],
      body: (
        <>
          <Heading title="Sites">
            <a class="button primary" href="/sites/new">
              New site
            </a>
          </Heading>
          <Card id="sites" live>
            {data.length === 0 ? (
              <Empty
                title="No sites yet"
                text="A site is built from a Git repository, an image or a Dockerfile, and gets an address of its own."
              >
                <a class="button" href="/sites/new">
                  New site
                </a>
              </Empty>
            ) : (
              <table>
                <thead>
                  <tr>
                    <th scope="col">Site</th>
                    <th scope="col">State</th>
                    <th scope="col" class="wide-only">
                      Source
                    </th>
                    <th scope="col" class="end">
                      Created
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {data.map((site) => (
                    <Row site={site} />
                  ))}
                </tbody>
              </table>
            )}
          </Card>
          <Pager path="/sites" next={nextCursor} label="Older sites" />
        </>
      ),
    };
  },
};
