import type { Site } from "../../protocol/api/sites.ts";
import { Layout } from "./layout.tsx";

const tone = (status: Site["status"]): string =>
  status === "RUNNING"
    ? "badge good"
    : status === "FAILED" || status === "SUSPENDED"
      ? "badge warn"
      : "badge";

const isMoving = ({ status }: Site): boolean => status === "DEPLOYING" || status === "DELETING";

export const SiteStatus = ({ status }: Pick<Site, "status">) => <span class={tone(status)}>{status}</span>;

export const SitesPage = ({ sites, next }: { sites: Site[]; next: string | null }) => (
  <Layout title="Sites" signedIn refreshSeconds={sites.some(isMoving) ? 3 : null}>
    <h1>Sites</h1>
    {sites.length === 0 && <p>No sites yet.</p>}
    <table>
      {sites.map((site) => (
        <tr>
          <td>
            <a href={`/sites/${site.id}`}>
              <strong>{site.name}</strong>
            </a>
            <br />
            {site.status === "PENDING" ? (
              <span class="soft">Not paid yet</span>
            ) : site.status === "RUNNING" || (site.status === "DEPLOYING" && site.currentDeployment) ? (
              <a href={site.url}>{site.url.replace(/^https?:\/\//, "")}</a>
            ) : (
              <span class="soft">
                {site.currentDeployment?.error ??
                  site.latestDeployment?.error ??
                  site.githubUrl ??
                  site.image}
              </span>
            )}
          </td>
          <td>
            <SiteStatus status={site.status} />
          </td>
        </tr>
      ))}
    </table>
    {next !== null && (
      <p class="links">
        <a href={`/?cursor=${encodeURIComponent(next)}`}>Older sites</a>
      </p>
    )}
    <p class="links">
      <a href="/sites/new">New site</a>
    </p>
  </Layout>
);
