import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { siteId, type Site } from "../../site.ts";
import { bold, dim, fields, link, safe, show, status, when } from "../../terminal.ts";

export const showSite = command("show", "One site: its address, its source, its deployment", "getSite")
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    const id = await siteId(client, site);
    show("getSite", await client.call("getSite", { id }, { signal }), (found) => siteText(found, site));
  });

const source = ({ deployType, githubUrl, branch, image }: Site): string =>
  deployType === "github"
    ? `${githubUrl ?? ""}${branch === null ? "" : ` (${branch})`}`
    : (image ?? "a Dockerfile");

const siteText = (site: Site, named: string | undefined): string =>
  fields({
    Site: `${bold(safe(site.name))}  ${dim(site.id)}`,
    Status: status(site.status) + (site.hostOffline ? dim("  its host is offline: changes wait") : ""),
    Address: link(safe(site.url)),
    Domains: site.domains.map(({ domain, status: word }) => `${safe(domain)} ${status(word)}`).join("\n"),
    Source: safe(source(site)),
    Port: String(site.port),
    Replicas: String(site.replicas),
    Volumes: site.volumes.map(({ name, mountPath }) => `${safe(name)} at ${safe(mountPath)}`).join("\n"),
    Variables:
      site.envVariables.length === 0
        ? null
        : `${site.envVariables.length} (${nextCommand("env list", named)})`,
    Deployment:
      site.currentDeployment &&
      `${site.currentDeployment.id} ${safe(site.currentDeployment.commit?.slice(0, 8) ?? "")} ${when(site.currentDeployment.finishedAt)}`,
    Latest:
      site.latestDeployment && site.latestDeployment.id !== site.currentDeployment?.id
        ? `${site.latestDeployment.id} ${status(site.latestDeployment.status)}`
        : null,
    Problem: safe(site.latestDeployment?.error ?? site.currentDeployment?.error ?? ""),
    Pack: site.packId,
    "Paid until":
      site.paidUntil === null ? "not paid yet (berth invoices list)" : site.paidUntil.slice(0, 10),
  });
