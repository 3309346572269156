import { agentIdOf, lines, repositoryOf } from "./engine-objects.ts";

/** One thing on the engine; `isOurs`: the service with this token made it. */
type Found = { name: string; isOurs: boolean };

/** Where the service that tests run on writes down what was left. */
export const leftoversFile = "left-on-engine.json";

/** What the engine holds before a service runs on it; then what that service, and the tests, left there. */
export async function rememberEngine(): Promise<(hostToken: string) => Promise<string[]>> {
  const before = new Set((await berthObjects("")).map(({ name }) => name));
  const others = await otherAgents("");
  return async (hostToken) => {
    const isShared = others.length > 0 || (await otherAgents(hostToken)).length > 0;
    if (isShared)
      console.log(
        "Another Berth runs on this engine: of what is left there only what this run's agent made was looked for.",
      );
    return (await berthObjects(hostToken))
      .filter(({ name, isOurs }) => !before.has(name) && (isOurs || !isShared))
      .map(({ name }) => name);
  };
}

const otherAgents = async (hostToken: string): Promise<string[]> =>
  (await lines("ps", "--format", '{{.Label "berth.ingress"}}', "--filter", "label=berth.ingress")).filter(
    (agentId) => agentId !== agentIdOf(hostToken),
  );

/** Everything with a name or a label of Berth's, and volumes without a name that nothing uses. Base images are none: they stay. */
async function berthObjects(hostToken: string): Promise<Found[]> {
  const agentId = agentIdOf(hostToken);
  const label = '{{.Label "berth.agent"}}{{.Label "berth.ingress"}}';
  const [containers, networks, volumes, unused, images] = await Promise.all([
    lines("ps", "--all", "--format", `{{.Names}} ${label} {{.Labels}}`),
    lines("network", "ls", "--format", "{{.Name}} {{.ID}} {{.Labels}}"),
    lines("volume", "ls", "--format", `{{.Name}} ${label} {{.Labels}}`),
    lines("volume", "ls", "--quiet", "--filter", "dangling=true"),
    lines("images", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}"),
  ]);
  const named = (kind: string, list: string[]): Found[] =>
    list
      .filter((line) => /^berth-|\bberth\.(?:managed|test|agent)=/.test(line))
      .map((line) => ({
        name: `${kind} ${line.split(" ")[0] ?? ""}`,
        isOurs: line.split(" ")[1] === agentId,
      }));
  return [
    ...named("container", containers),
    ...named("network", networks),
    ...named("volume", volumes),
    ...unused
      .filter((name) => /^[0-9a-f]{64}$/.test(name))
      .map((name) => ({ name: `volume ${name}`, isOurs: false })),
    ...(await berthImages(images, hostToken)),
  ];
}

/** Of an image that lost its name only the labels tell. */
async function berthImages(images: string[], hostToken: string): Promise<Found[]> {
  const found = new Map<string, Found>();
  for (const kind of ["berth.managed", "berth.test"])
    for (const id of await lines("images", "--quiet", "--filter", `label=${kind}`))
      found.set(`image ${id}`, { name: `image ${id}`, isOurs: false });
  for (const line of images.filter((one) => one.includes(" berth-"))) {
    const [id = "", reference = ""] = line.split(" ");
    found.delete(`image ${id}`);
    found.set(reference, {
      name: `image ${reference}`,
      isOurs: reference.startsWith(`${await repositoryOf(reference, hostToken)}:`),
    });
  }
  return [...found.values()];
}
