import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { agentIdOf, lines, repositoryOf } from "./engine-objects.ts";

/** One object on the engine; `isOurs`: the service with this token created it. */
type Found = { name: string; isOurs: boolean };

/** The service that tests run on records its leftovers here. */
export const leftoversFile = "left-on-engine.json";

const lookMs = 10_000;

/**
 * Records the engine's objects before a service runs on it; `beside`: another service of the same run uses it.
 * @returns lists what that service and the tests left there
 */
export async function rememberEngine(
  hostToken: () => string,
  beside: boolean,
): Promise<() => Promise<string[]>> {
  const before = new Set((await berthObjects("")).map(({ name }) => name));
  let isShared = beside;
  const look = () => {
    isShared ||= runsAnother();
  };
  look();
  const timer = setInterval(look, lookMs).unref();
  return async () => {
    clearInterval(timer);
    look();
    if (isShared && !beside)
      console.log(
        "Another Berth runs on this engine: only objects of this run's agent were checked for leftovers.",
      );
    return (await berthObjects(hostToken()))
      .filter(({ name, isOurs }) => !before.has(name) && (isOurs || !isShared))
      .map(({ name }) => name);
  };
}

type Process = { pid: number; parent: number; command: string };

const berthCommand = /\bscripts\/(?:start|test|bench)\.ts\b|\bagent\.mjs\b/;

const ofBerth = ({ command }: Process): boolean => berthCommand.test(command);

/** Whether another Berth runs on this machine that is unrelated to this process tree. */
export function runsAnother(): boolean {
  const all = new Map(processes().map((one) => [one.pid, one]));
  const ancestry = (pid: number): Process[] => {
    const one = all.get(pid);
    return one ? [one, ...ancestry(one.parent)] : [];
  };
  const root = ancestry(process.pid).findLast(ofBerth);
  return [...all.values()].some((one) => ofBerth(one) && !ancestry(one.pid).some((up) => up === root));
}

/** Processes of this machine, not of containers on it. */
function processes(): Process[] {
  const own = readlinkSync("/proc/self/ns/pid");
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      if (readlinkSync(`/proc/${name}/ns/pid`) !== own) return [];
      const parent = Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1]);
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      return [{ pid: Number(name), parent, command }];
    } catch {
      // It has ended.
      return [];
    }
  });
}

/**
 * Every object with a name or a label of Berth's, and unused anonymous volumes. Base images do not count: they are
 * kept.
 */
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

/** An untagged image is identified by its labels only. */
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
