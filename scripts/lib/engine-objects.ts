import { createHash, createHmac } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { liftBuildLimits } from "../../agent/isolation/build-limits.ts";
import { removeFirewall } from "../../agent/isolation/firewall.ts";
import { bridgePrefix } from "../../agent/isolation/rules.ts";
import { run, succeeds } from "./command.ts";

/** The agent's id in the engine's labels; agent/config.ts derives it the same way. */
export const agentIdOf = (hostToken: string) =>
  createHash("sha256").update(hostToken).digest("hex").slice(0, 16);

export const lines = async (...args: string[]): Promise<string[]> =>
  (await run("docker", args)).split("\n").filter(Boolean);

const sitesOf = (hostToken: string) => `label=berth.agent=${agentIdOf(hostToken)}`;

/** Stops sites and databases, and keeps their containers for the next start. */
export async function stopSites(hostToken: string): Promise<void> {
  const ids = await lines("ps", "--quiet", "--filter", sitesOf(hostToken), "--filter", "label=berth.site");
  if (ids.length > 0) await run("docker", ["stop", "--time", "5", ...ids]);
  // Databases last, each with the time it needs to write everything.
  const others = await lines("ps", "--quiet", "--filter", sitesOf(hostToken));
  if (others.length > 0) await run("docker", ["stop", ...others]);
}

/** Caddy's container is recreated at every start, and its log is of nobody's interest by then. */
export async function removeIngress(hostToken: string): Promise<void> {
  const ids = await lines(
    "ps",
    "--all",
    "--quiet",
    "--filter",
    `label=berth.ingress=${agentIdOf(hostToken)}`,
  );
  if (ids.length > 0) await run("docker", ["rm", "--force", ...ids]);
  const logs = await lines(
    "volume",
    "ls",
    "--quiet",
    "--filter",
    `name=^berth-ingress-log-${agentIdOf(hostToken)}$`,
  );
  if (logs.length > 0) await run("docker", ["volume", "rm", ...logs]);
}

/**
 * Removes firewall rules and build limits once no tenant's container runs, so that other uses of the engine are
 * unrestricted again. The build limit is shared by all builds on the engine, and is kept if another Berth may be
 * building.
 */
export async function removeIsolation(hostToken: string, isShared: boolean): Promise<void> {
  if (!isShared) await liftBuildLimits();
  await removeFirewall(agentIdOf(hostToken));
}

/** Removes containers, networks and images of this host's sites, and its databases with their data. */
export async function removeSites(hostToken: string): Promise<void> {
  const found = await lines(
    "ps",
    "--all",
    "--filter",
    sitesOf(hostToken),
    "--format",
    '{{.ID}} {{.Label "berth.account"}} {{.Label "berth.site"}}',
  );
  const ids = found.map((line) => line.split(" ")[0] ?? "");
  if (ids.length > 0) await run("docker", ["rm", "--force", "--volumes", ...ids]);
  // A stopped database consists of its volume only, and a site's volumes outlive its containers.
  const volumes = await lines(
    "volume",
    "ls",
    "--filter",
    sitesOf(hostToken),
    "--format",
    '{{.Name}} {{.Label "berth.account"}}',
  );
  for (const line of volumes) await run("docker", ["volume", "rm", line.split(" ")[0] ?? ""]);
  const accounts = [...found, ...volumes].map((line) => `berth-${line.split(" ")[1] ?? ""}`);
  for (const network of new Set([...accounts, ...(await networksOf(hostToken))]))
    await removeNetwork(network);
  // An image's label names its site, and only this host's token derives the repository's name from it.
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
  // Those that were pulled have no label of ours: only their sites' containers name the repository.
  const sites = new Set(found.map((line) => line.split(" ")[2]).filter(Boolean));
  const repositories = [...sites].map((site) => imageRepository(hostToken, site ?? ""));
  for (const repository of [...repositories, `berth.invalid/${imageRepository(hostToken, "shared-bases")}`])
    for (const image of await lines("images", "--format", "{{.Repository}}:{{.Tag}}", repository))
      await succeeds("docker", ["rmi", image]);
}

/** Networks whose bridge this host's agent named: some are used by no container or volume any more. */
async function networksOf(hostToken: string): Promise<string[]> {
  const ours = bridgePrefix(agentIdOf(hostToken));
  const format = '{{.Name}} {{index .Options "com.docker.network.bridge.name"}}';
  const named: string[] = [];
  for (const network of await lines("network", "ls", "--quiet", "--filter", "label=berth.managed=true")) {
    // Another service on this engine may have just removed its own.
    const [line = ""] = await lines("network", "inspect", "--format", format, network).catch(() => []);
    if (line.split(" ")[1]?.startsWith(ours)) named.push(line.split(" ")[0] ?? "");
  }
  return named;
}

/**
 * Removes the network unless containers use it; the engine may need a moment after the last of them has gone, and may not have recorded
 * that one left: what it lists as none's is freed.
 */
async function removeNetwork(network: string): Promise<void> {
  let refusal: unknown;
  for (let attempt = 1; attempt <= 5; attempt++) {
    if (!(await succeeds("docker", ["network", "inspect", network]))) return;
    if ((await lines("ps", "--all", "--quiet", "--filter", `network=${network}`)).length > 0) return;
    try {
      return void (await run("docker", ["network", "rm", network], { timeoutMs: 30_000 }));
    } catch (error) {
      refusal = error;
      await delay(1000);
    }
    for (const [id = "", name = ""] of await endpointsOf(network))
      if (id.startsWith("ep-")) await succeeds("docker", ["network", "disconnect", "--force", network, name]);
  }
  const left = await endpointsOf(network);
  console.error(
    `The network ${network} was not removed: ${String(refusal)}\nOn it: ${left.join(" ") || "nothing"}`,
  );
}

/** The containers on a network, or what stands in for one that the engine does not know (`ep-…`), and their names. */
const endpointsOf = async (network: string): Promise<string[][]> =>
  (
    await lines(
      "network",
      "inspect",
      "--format",
      '{{range $id, $one := .Containers}}{{$id}} {{$one.Name}}{{"\\n"}}{{end}}',
      network,
    ).catch(() => [])
  ).map((line) => line.split(" "));

/** The repository that this host's token derives for the image's site; undefined if its label names none. */
export async function repositoryOf(image: string, hostToken: string): Promise<string | undefined> {
  const label = ["--format", '{{index .Config.Labels "berth.site"}}', image];
  // Another service on this engine may have just removed its own.
  const [siteId] = await lines("image", "inspect", ...label).catch(() => []);
  return siteId === undefined ? undefined : imageRepository(hostToken, siteId);
}

/** Derived as in agent/config.ts. */
export const imageRepository = (hostToken: string, siteId: string): string =>
  `berth-site/${createHmac("sha256", hostToken).update(siteId).digest("hex").slice(0, 32)}`;
