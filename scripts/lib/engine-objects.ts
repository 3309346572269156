import { createHash, createHmac } from "node:crypto";
import { liftBuildLimits } from "../../agent/isolation/build-limits.ts";
import { removeFirewall } from "../../agent/isolation/firewall.ts";
import { run, succeeds } from "./command.ts";

/** The agent's name on the engine's labels; agent/config.ts derives it the same way. */
export const agentIdOf = (hostToken: string) =>
  createHash("sha256").update(hostToken).digest("hex").slice(0, 16);

export const lines = async (...args: string[]): Promise<string[]> =>
  (await run("docker", args)).split("\n").filter(Boolean);

const sitesOf = (hostToken: string) => `label=berth.agent=${agentIdOf(hostToken)}`;

/** Sites and databases stop, and keep their containers for the next start. */
export async function stopSites(hostToken: string): Promise<void> {
  const ids = await lines("ps", "--quiet", "--filter", sitesOf(hostToken), "--filter", "label=berth.site");
  if (ids.length > 0) await run("docker", ["stop", "--time", "5", ...ids]);
  // Last, and each with the time it needs to write everything.
  const others = await lines("ps", "--quiet", "--filter", sitesOf(hostToken));
  if (others.length > 0) await run("docker", ["stop", ...others]);
}

/** Caddy is made anew at every start. */
export async function removeIngress(hostToken: string): Promise<void> {
  const ids = await lines(
    "ps",
    "--all",
    "--quiet",
    "--filter",
    `label=berth.ingress=${agentIdOf(hostToken)}`,
  );
  if (ids.length > 0) await run("docker", ["rm", "--force", ...ids]);
}

/**
 * What kept tenants in bounds, once none of their containers runs: other uses of the engine are free again. All builds on it share
 * one bound, which stays where another Berth may be building.
 */
export async function removeIsolation(hostToken: string, isShared: boolean): Promise<void> {
  if (!isShared) await liftBuildLimits();
  await removeFirewall(agentIdOf(hostToken));
}

/** Containers, networks and images of this host's sites, and its databases with their data. */
export async function removeSites(hostToken: string): Promise<void> {
  const found = await lines(
    "ps",
    "--all",
    "--filter",
    sitesOf(hostToken),
    "--format",
    '{{.ID}} {{.Label "berth.account"}}',
  );
  const ids = found.map((line) => line.split(" ")[0] ?? "");
  if (ids.length > 0) await run("docker", ["rm", "--force", "--volumes", ...ids]);
  // A stopped database has nothing else, and a site's outlive its containers.
  const volumes = await lines(
    "volume",
    "ls",
    "--filter",
    sitesOf(hostToken),
    "--format",
    '{{.Name}} {{.Label "berth.account"}}',
  );
  for (const line of volumes) await run("docker", ["volume", "rm", line.split(" ")[0] ?? ""]);
  for (const account of new Set([...found, ...volumes].map((line) => line.split(" ")[1] ?? "")))
    await succeeds("docker", ["network", "rm", `berth-${account}`]);
  // An image's label names its site, and only this host's token makes the repository's name of it.
  const images = await lines(
    "images",
    "--filter",
    "label=berth.managed=true",
    "--format",
    "{{.Repository}}:{{.Tag}}",
  );
  for (const image of images.filter((name) => name.startsWith("berth-site/")))
    if (image.startsWith(`${await repositoryOf(image, hostToken)}:`))
      await succeeds("docker", ["rmi", image]);
  const shared = `berth.invalid/${imageRepository(hostToken, "shared-bases")}`;
  for (const image of await lines("images", "--format", "{{.Repository}}:{{.Tag}}", shared))
    await succeeds("docker", ["rmi", image]);
}

/** The repository that this host's token makes of the site an image names; undefined where it names none. */
export async function repositoryOf(image: string, hostToken: string): Promise<string | undefined> {
  const label = ["--format", '{{index .Config.Labels "berth.site"}}', image];
  // Another service on this engine may have removed its own just now.
  const [siteId] = await lines("image", "inspect", ...label).catch(() => []);
  return siteId === undefined ? undefined : imageRepository(hostToken, siteId);
}

/** As agent/config.ts makes it. */
export const imageRepository = (hostToken: string, siteId: string): string =>
  `berth-site/${createHmac("sha256", hostToken).update(siteId).digest("hex").slice(0, 32)}`;
