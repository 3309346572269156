import type { Site } from "../../protocol/api/sites.ts";
import { Layout } from "./layout.tsx";

const tone = (status: Site["status"]): string =>
  status === "RUNNING"
    ? "badge good"
    : status === "FAILED" || status === "SUSPENDED"
      ? "badge warn"
      : "badge";

export const SitesPage = ({ sites }: { sites: Site[] }) => (
  <Layout title="Sites" signedIn>
    <h1>Sites</h1>
    {sites.length === 0 && <p>No sites yet. Create one with POST /api/v1/sites.</p>}
    <table>
      {sites.map((site) => (
        <tr>
          <td>
            <strong>{site.name}</strong>
            <br />
            {site.status === "RUNNING" ? (
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
            <span class={tone(site.status)}>{site.status}</span>
          </td>
        </tr>
      ))}
    </table>
  </Layout>
);
