import { existsSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nameBeside, type ContainerSpec, type Engine } from "../../agent/docker/engine.ts";
import { networkName } from "../../agent/docker/specs.ts";
import { deleteSite } from "../../agent/handlers/delete-site.ts";
import { restartSite } from "../../agent/handlers/restart-site.ts";
import { openRetirement } from "../../agent/sites/retire.ts";
import { startSite } from "../../agent/handlers/start-site.ts";
import { stopSite } from "../../agent/handlers/stop-site.ts";
import type { Host } from "../../agent/host.ts";
import { JobError } from "../../agent/job.ts";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";
import { formatId } from "../../protocol/ids.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { emptyDisk } from "../support/empty-disk.ts";

const deploymentId = formatId("deployment", 1, new Uint8Array(10));
type Limits = Parameters<Engine["limitContainer"]>[1];
type Container = { id: string; name: string; labels: Record<string, string>; running: boolean };

let folder: string;
let records: Records;
/** What every container answers with. */
let app: http.Server;
let containers: Container[];
/** Of the image. */
let labels: Record<string, string>;
let serving: readonly Target[] | "parked" | null;
/** Sites of which it is not known what serves. */
let lost: string[];
let probations: number;
beforeEach(async () => {
  folder = temporaryFolder();
  records = openRecords(join(folder, "running.db"));
  containers = [];
  serving = null;
  labels = {};
  lost = [];
  probations = 0;
  await new Promise<void>(
    (resolve) =>
      void (app = http.createServer((_, response) => void response.end()).listen(0, "127.0.0.1", resolve)),
  );
});
afterEach(() => {
  app.close();
  records.close();
});

const run = () => runSpec({ port: (app.address() as AddressInfo).port });
const servingContainers = () =>
  (serving === null || serving === "parked" ? [] : serving).map(({ containerId }) =>
    containers.find(({ id }) => id === containerId),
  );

/** A host whose engine keeps containers in memory. */
function hostOf(changes: Partial<Engine> = {}): Host {
  let made = 0;
  const find = (idOrName: string) => containers.find(({ id, name }) => id === idOrName || name === idOrName);
  const engine = {
    imageId: () => Promise.resolve("image"),
    imageLabels: () => Promise.resolve(labels),
    ensureNetwork: () => Promise.resolve(),
    async createContainer(spec: ContainerSpec, kept: readonly string[]): Promise<string> {
      const { name, Labels: labels } = spec;
      const there = find(name);
      if (there?.labels["berth.config"] === labels["berth.config"]) return there?.id ?? "";
      if (there && kept.includes(there.id))
        return engine.createContainer({ ...spec, name: nameBeside(spec) }, kept);
      if (there) await engine.removeContainer(there.id);
      containers.push({ id: `container-${++made}`, name, labels, running: false });
      return `container-${made}`;
    },
    startContainer: (id: string) => Promise.resolve(void Object.assign(find(id) ?? {}, { running: true })),
    stopContainer: (id: string) => Promise.resolve(void Object.assign(find(id) ?? {}, { running: false })),
    removeContainer: (id: string) =>
      Promise.resolve(void (containers = containers.filter((one) => one.id !== id))),
    inspectContainer: (id: string) => {
      const found = find(id);
      return Promise.resolve(
        found
          ? { ...found, user: "", pid: 0, addresses: { [networkName(run().accountId)]: "127.0.0.1" } }
          : null,
      );
    },
    listContainers: () => Promise.resolve([...containers]),
    volumes: () => Promise.resolve([]),
    firstExit: () => new Promise(() => undefined),
    ...changes,
  } as unknown as Engine;
  return {
    agentId: "agent",
    engine,
    imageRepository: () => "berth-site/a",
    settings: { probationSeconds: 0 },
    isolation: { demand: () => Promise.resolve() },
    buildRoom: emptyDisk(),
    ingress: {
      current: () => serving,
      newest: (_id, { hostnames }) => hostnames,
      fallback: () => null,
      lost: () => lost,
      route: (_id, _names, targets) => Promise.resolve(void (serving = targets)),
      routeOnProbation: (_id, _names, targets) => {
        probations++;
        return Promise.resolve(void (serving = targets));
      },
      settle: () => Promise.resolve(),
      readdress: () => Promise.resolve(),
      park: () => Promise.resolve(void (serving = "parked")),
    } as Partial<Ingress> as Ingress,
    ...openRetirement({
      engine,
      agentId: "agent",
      patience: { drainSeconds: 0.3, drainMaxSeconds: 0.3 },
      drains: records,
      keepLastLines: () => Promise.resolve(),
      onError: (error) => expect.fail(String(error)),
    }),
  } as unknown as Host;
}

describe("a container that is put into service again", () => {
  it("while it was about to be removed stays: restarted, stopped and started in a hurry, a site serves", async () => {
    const host = hostOf();
    await startSite(host, { run: run(), deploymentId }, jobRun());
    await restartSite(host, { run: run(), deploymentId }, jobRun({ jobId: "job_restarted" }));
    await stopSite(host, run(), jobRun());
    await startSite(host, { run: run(), deploymentId }, jobRun());
    await host.retired();
    expect(servingContainers()).toMatchObject([{ running: true }]);
    expect(containers).toHaveLength(1);
  });

  it("while it is being removed is made anew", async () => {
    const removing = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const host = hostOf({
      stopContainer: () => {
        removing.resolve();
        return goOn.promise;
      },
    });
    await startSite(host, { run: run(), deploymentId }, jobRun());
    const [old] = containers;
    await restartSite(host, { run: run(), deploymentId }, jobRun({ jobId: "job_restarted" }));
    await removing.promise;
    const started = startSite(host, { run: run(), deploymentId }, jobRun());
    goOn.resolve();
    await started;
    await host.retired();
    expect(servingContainers()).toMatchObject([{ name: old?.name, running: true }]);
  });
});

it("files that a server of ours serves are live at once; where a command starts them, or a program, that is tried first", async () => {
  const host = hostOf();
  labels = { "berth.static": "true" };
  await startSite(host, { run: run(), deploymentId }, jobRun());
  expect(probations).toBe(0);
  const startCommand = "caddy run";
  await startSite(host, { run: { ...run(), startCommand }, deploymentId }, jobRun({ jobId: "job_2" }));
  labels = {};
  await restartSite(host, { run: run(), deploymentId }, jobRun({ jobId: "job_3" }));
  expect(probations).toBe(2);
  await host.retired();
});

it("a stop that the engine refuses leaves the site serving, as its record says; a suspended one stays out of service", async () => {
  const host = hostOf({ stopContainer: () => Promise.reject(new Error("(HTTP code 500) cannot stop")) });
  await startSite(host, { run: run(), deploymentId }, jobRun());
  const before = servingContainers();
  await expect(stopSite(host, run(), jobRun())).rejects.toThrow("cannot stop");
  expect(servingContainers()).toEqual(before);
  await expect(
    stopSite(host, { ...run(), notice: { reason: "suspended", payUrl: null } }, jobRun()),
  ).rejects.toThrow();
  expect(serving).toBe("parked");
});

it("a site is deleted from a disk that has no room left, not even to write down that nothing leads to it", async () => {
  const host = hostOf({
    volumes: () => Promise.resolve([]),
    imageTags: () => Promise.resolve([]),
    removeUnnamedImages: () => Promise.resolve(),
    removeNetwork: () => Promise.resolve(),
  });
  const kept = join(folder, "times.json");
  writeFileSync(kept, "{}");
  host.fileTimes = () => kept;
  await startSite(host, { run: run(), deploymentId }, jobRun());
  host.ingress.unroute = () => {
    if (containers.length > 0) return Promise.reject(new Error("ENOSPC: no space left on device, write"));
    serving = null;
    return Promise.resolve();
  };
  await deleteSite(host, run(), jobRun());
  expect([serving, containers, existsSync(kept)]).toEqual([null, [], false]);
});

it("what a new version wrote that does not come up goes into the deployment's log, before its container goes", async () => {
  const line = (stream: number, text: string) => {
    const message = Buffer.from(`2026-01-01T00:00:01.000000000Z ${text}\n`);
    const header = Buffer.alloc(8);
    header[0] = stream;
    header.writeUInt32BE(message.length, 4);
    return Buffer.concat([header, message]);
  };
  const printed: string[] = [];
  const host = hostOf({
    readLog: (id) =>
      Promise.resolve(
        Buffer.concat(
          containers.some((one) => one.id === id) ? [line(1, "connecting"), line(2, "late")] : [],
        ),
      ),
  });
  const job = jobRun({ print: ({ stream, text }) => printed.push(`${stream} ${text}`) > 0 });
  await startSite(host, { run: run(), deploymentId }, job);
  expect(printed).toEqual([]);
  const silent = { ...run(), port: 1, startTimeoutSeconds: 0.01 };
  await expect(
    restartSite(host, { run: silent, deploymentId }, { ...job, jobId: "job_restarted" }),
  ).rejects.toThrow(/Nothing listens/);
  expect(printed).toEqual(["stdout connecting", "stderr late"]);
  expect(containers).toHaveLength(1);
});

it("a volume's old writer runs again though the engine was away when the new version failed", async () => {
  const withVolume = () => ({ ...run(), volumes: [{ name: "data", mountPath: "/data" }] });
  const host = hostOf({ ensureVolume: () => Promise.resolve(), readFiles: () => Promise.resolve(null) });
  const { engine } = host;
  await startSite(host, { run: withVolume(), deploymentId }, jobRun());
  const there = { ...engine };
  let refusals = 3;
  const away = (work: (id: string) => Promise<void>) => (id: string) =>
    refusals-- > 0 ? Promise.reject(new Error("connect ECONNREFUSED /var/run/docker.sock")) : work(id);
  engine.startContainer = away((id) => there.startContainer(id));
  engine.removeContainer = away((id) => there.removeContainer(id));
  const restarted = restartSite(
    host,
    { run: withVolume(), deploymentId },
    jobRun({ jobId: "job_restarted" }),
  );
  await expect(restarted).rejects.toThrow(/ECONNREFUSED/);
  expect(refusals).toBeLessThan(0);
  expect(servingContainers()).toMatchObject([{ running: true }]);
  expect(containers).toHaveLength(1);
});

it.each(["restart", "start with other settings"])(
  "a %s whose container the engine made without an answer leaves no container but those in service",
  async (how) => {
    const host = hostOf();
    await startSite(host, { run: run(), deploymentId }, jobRun());
    const before = structuredClone(containers);
    const { engine } = host;
    const there = { ...engine };
    engine.createContainer = async (...what) => {
      await there.createContainer(...what);
      throw new Error("socket hang up");
    };
    const env = [{ key: "A", value: "new", scope: "runtime", secret: false } as const];
    const failing =
      how === "restart"
        ? restartSite(host, { run: run(), deploymentId }, jobRun({ jobId: "job_restarted" }))
        : startSite(host, { run: { ...run(), env }, deploymentId }, jobRun());
    await expect(failing).rejects.toThrow("socket hang up");
    expect(containers).toEqual(before);
  },
);

it.each(["restart", "start with other settings"])(
  "a %s that fails where it was lost what serves leaves all containers running",
  async (how) => {
    const withVolume = () => ({ ...run(), volumes: [{ name: "data", mountPath: "/data" }] });
    const host = hostOf({ ensureVolume: () => Promise.resolve(), readFiles: () => Promise.resolve(null) });
    await startSite(host, { run: withVolume(), deploymentId }, jobRun());
    const before = structuredClone(containers);
    serving = null;
    lost = [run().siteId];
    const { engine } = host;
    const there = { ...engine };
    engine.startContainer = (id) =>
      before.some((one) => one.id === id)
        ? there.startContainer(id)
        : Promise.reject(new Error("no such user"));
    const env = [{ key: "A", value: "new", scope: "runtime", secret: false } as const];
    const failing =
      how === "restart"
        ? restartSite(host, { run: withVolume(), deploymentId }, jobRun({ jobId: "job_restarted" }))
        : startSite(host, { run: { ...withVolume(), env }, deploymentId }, jobRun());
    await expect(failing).rejects.toThrow(/user/);
    expect(containers).toEqual(before);
  },
);

it("what serves since an attempt that could not say so serves on while the next one has other settings", async () => {
  const host = hostOf();
  const again = jobRun({ jobId: "job_restarted" });
  await restartSite(host, { run: run(), deploymentId }, again);
  const before = servingContainers();
  Object.assign(host.engine, { startContainer: () => Promise.reject(new Error("no such user")) });
  const env = [{ key: "A", value: "new", scope: "runtime", secret: false } as const];
  await expect(restartSite(host, { run: { ...run(), env }, deploymentId }, again)).rejects.toThrow(/user/);
  expect(servingContainers()).toEqual(before);
  expect(before).toMatchObject([{ running: true }]);
});

describe("a restart with the limits of a smaller pack that fails", () => {
  const small = { memoryMb: 100, cpuMilli: 100, pids: 64 };
  const large = () => ({ ...run(), limits: { memoryMb: 512, cpuMilli: 500, pids: 256 } });
  const limited: object[] = [];
  const limit = (id: string, { Memory = 0, NanoCpus, PidsLimit }: Limits) =>
    Promise.resolve(void limited.push([id, Memory / 2 ** 20, NanoCpus, PidsLimit]));
  const restartIn = async (host: Host, limits = small) => {
    limited.length = 0;
    const again = { run: { ...run(), limits, port: 1, startTimeoutSeconds: 0.01 }, deploymentId };
    return restartSite(host, again, jobRun({ jobId: "job_restarted" })).catch(
      (error: Error) => error.message,
    );
  };

  it("gives them to all containers that go on serving, and says so", async () => {
    const host = hostOf({ limitContainer: limit });
    await startSite(host, { run: { ...large(), replicas: 2 }, deploymentId }, jobRun());
    const ids = containers.map(({ id }) => id);
    expect(await restartIn(host)).toMatch(
      /^Nothing listens.* goes on with the 100 MB of the site's pack.*larger pack/,
    );
    expect(limited).toEqual(ids.map((id) => [id, 50, 50_000_000, 64]));
    expect(servingContainers()).toMatchObject(ids.map((id) => ({ id, running: true })));
    expect(await restartIn(host, large().limits)).not.toContain("MB");
  });

  it("starts those anew that the kernel takes no memory from, and that go on else", async () => {
    let refusals = 1;
    const host = hostOf({
      limitContainer: (id, limits) =>
        refusals-- > 0
          ? Promise.reject(new Error("unable to set memory limit to 104857600"))
          : (limited.push(["running", containers.some((one) => one.running)]), limit(id, limits)),
    });
    await startSite(host, { run: large(), deploymentId }, jobRun());
    const ids = containers.map(({ id }) => id);
    expect(await restartIn(host)).toContain("100 MB");
    expect(limited).toEqual([
      ["running", false],
      [ids[0], 100, 100_000_000, 64],
    ]);
    expect(servingContainers()).toMatchObject([{ id: ids[0], running: true }]);
  });

  it("is told as it is when the engine refuses them", async () => {
    const host = hostOf({ limitContainer: () => Promise.reject(new Error("no")) });
    await startSite(host, { run: large(), deploymentId }, jobRun());
    expect(await restartIn(host)).toMatch(/^Nothing listens(?!.* MB)/);
    expect(servingContainers()).toMatchObject([{ running: true }]);
  });
});

it.each([
  ["createContainer", "No command specified", /set startCommand, or add CMD/],
  [
    "startContainer",
    "unable to find user app: no matching entries in passwd file",
    /The image has no user app: correct USER/,
  ],
  ["startContainer", "Cannot mkdir: /etc/hostname is not a directory", /correct WORKDIR/],
  [
    "startContainer",
    "lstat /var/lib/docker/overlay2/1/merged/a: not a directory",
    /^(?!.*overlay2).*the volume's mountPath/,
  ],
] as const)("what the engine refuses at %s for the image's sake is told: %s", async (step, said, told) => {
  const host = hostOf({ [step]: () => Promise.reject(new Error(`(HTTP code 500) ${said}`)) });
  const error: unknown = await startSite(host, { run: run(), deploymentId }, jobRun()).catch((one) => one);
  expect(error).toBeInstanceOf(JobError);
  expect((error as JobError).message).toMatch(told);
});
