import { EventEmitter } from "node:events";
import { chmodSync, mkdirSync, statfsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ensureImage } from "./image-build/ensure-image.ts";
import { openImageProvider } from "./image-build/image-provider.ts";
import { createStore } from "./databases/backups/store.ts";
import { defaultDockerSocket, readConfig } from "./config.ts";
import { openInspection } from "./databases/inspect/index.ts";
import { openPublicAccess } from "./databases/public-access.ts";
import { openRunningDatabases } from "./databases/running.ts";
import type { Engine } from "./docker/engine.ts";
import { createEngine } from "./docker/client.ts";
import { nftablesLimit, unfitReason } from "./docker/unfit.ts";
import { adoptCommands } from "./startup/adopt-commands.ts";
import { handle } from "./handlers/index.ts";
import { isHandingOver } from "./sites/hand-over.ts";
import { openRetirement } from "./sites/retire.ts";
import { reviveServing, sweep } from "./startup/sweep.ts";
import { openReaddressing } from "./sites/readdress.ts";
import type { Host } from "./host.ts";
import { ingressContainer, ingressImage, startIngress } from "./ingress/container.ts";
import { idsHeld, keptOf, removeKept, removeKeptVolumes, volumesKept } from "./inventory/kept.ts";
import { InventoryReporter } from "./inventory/reporter.ts";
import { openRoutes } from "./ingress/routes.ts";
import { partsOf, watchIngress } from "./ingress/watch.ts";
import { openBuildRoom } from "./isolation/build-room.ts";
import { liftKernelBounds } from "./isolation/kernel-bounds.ts";
import { openIsolation, raiseFirewall } from "./isolation/isolation.ts";
import { openJournal } from "./journal.ts";
import { startLink } from "./link.ts";
import { log } from "./log.ts";
import { Runner } from "./runner.ts";
import { maxLostSites } from "../protocol/agent/messages.ts";
import { isId, type Id } from "../protocol/ids.ts";
import { databasesStillOut } from "./running/databases-out.ts";
import { Desk } from "./question-server.ts";
import { DatabaseWrites } from "./databases/write-limits.ts";
import { DiskGuard } from "./running/disk-guard.ts";
import { DiskUse } from "./running/disk-use.ts";
import { HealthWatch } from "./running/health.ts";
import { Keeper } from "./running/container-supervisor.ts";
import { LogGuard } from "./running/log-guard.ts";
import { openRecords, type Crash } from "./running/records.ts";
import { keepLastLines } from "./running/site-log.ts";
import { startSampling } from "./running/sampler.ts";
import { watchSites } from "./running/watch.ts";
import { updater } from "./update.ts";
import { agentVersion } from "./version.ts";
import { label } from "./docker/labels.ts";

// What the install script ends with: it has no settings to parse yet.
if (process.argv[2] === "check") await check(process.env["BERTH_DOCKER_SOCKET"] || defaultDockerSocket);

const config = readConfig(process.env);
await liftKernelBounds();
// What berth-firewall.service runs before the engine, which starts the sites by itself.
if (process.argv[2] === "firewall") {
  await raiseFirewall({ agentId: config.agentId, ...config.firewall });
  process.exit();
}
const workDirectory = join(config.stateDirectory, "work");
// Whoever made them: a umask would also be Git's, whose files images are built of.
for (const folder of [config.stateDirectory, workDirectory, join(config.stateDirectory, "ingress")]) {
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o700);
}

const engine = createEngine({ socketPath: config.dockerSocket });
const publicAccess = openPublicAccess(
  join(config.stateDirectory, "public-access"),
  config.agentId,
  config.publicAddress,
);
const ways = () => publicAccess.ways(engine);
const isolation = openIsolation({ agentId: config.agentId, engine, ways, ...config.firewall });
// Before the engine is up, as it starts the sites by itself.
await isolation.refresh();
await untilAnswers(engine);
await untilFit(engine);

const ours = await engine.listContainers({ [label.managed]: "true", [label.agent]: config.agentId });
const ingress = openRoutes(join(config.stateDirectory, "ingress", "routes.json"), config.ingress.statusPort, [
  ...new Set(ours.flatMap(({ labels }) => labels[label.site] || [])),
]);
const records = openRecords(join(config.stateDirectory, "running.db"));
const databases = openRunningDatabases(engine, config.agentId);
const diskUse = new DiskUse({
  engine,
  ingress,
  records,
  databases: databases.list,
  onMeasured: (holding) =>
    void diskGuard
      .judge(holding)
      .catch((error) =>
        log("error", "A site over its disk was not stopped", { siteId: holding.siteId, error }),
      ),
  onDatabaseMeasured: (holding) => databaseWrites.judge(holding, diskGuard.isShort),
});
const databaseWrites = new DatabaseWrites({ engine, records });
const buildRoom = openBuildRoom({ engine, workDirectory, slots: config.slots, ...config.builds });
const diskGuard = new DiskGuard({
  engine,
  ingress,
  records,
  agentId: config.agentId,
  diskUse,
  databases: databases.list,
  disk: () => buildRoom.disk(),
  minFreeMb: config.builds.minFreeDiskMb,
  onCrash: (crash) => desk.crashed(crash),
});
const host: Host = {
  agentId: config.agentId,
  engine,
  isolation,
  publicAccess,
  buildRoom,
  ...(config.imageProvider && { provideImage: openImageProvider(config.imageProvider) }),
  backups: createStore({ url: config.controlPlaneUrl, token: config.hostToken.reveal() }),
  workDirectory,
  settings: config.settings,
  imageRepository: config.imageRepository,
  ingress,
  volumesMb: async (siteId) => {
    const sizes = (await diskUse.of(siteId, 0)).volumes.map(({ sizeMb }) => sizeMb);
    return sizes.reduce<number | null>((sum, one) => (sum === null || one === null ? null : sum + one), 0);
  },
  ...openRetirement({
    engine,
    agentId: config.agentId,
    patience: config.settings,
    drains: records,
    keepLastLines: (containerId) => keepLastLines({ engine, records }, containerId),
    onError: (error) => log("error", "A retired container was not removed", { error }),
  }),
};

const stopping = new AbortController();
await isolation.refresh();
isolation.watch(stopping.signal);
await ensureIngress();
await sweep(host, await databasesStillOut({ engine, records }));

const starts = new EventEmitter().setMaxListeners(0);
const desk = new Desk({
  engine,
  agentId: config.agentId,
  ingress,
  records,
  diskUse,
  kept: {
    held: () => idsHeld(host),
    of: (ids) => keptOf(host, ids),
    remove: (id) => removeKept(host, id),
    volumesOf: (databases) => volumesKept(host, databases),
    removeVolumes: (database) => removeKeptVolumes(host, database),
  },
  inspect: openInspection({
    engine,
    agentId: config.agentId,
    useOnce: (nonce, expiresAt) => records.useOnce(nonce, expiresAt, new Date()),
  }),
  onStart(siteId, callback, signal) {
    starts.on(siteId, callback);
    signal.addEventListener("abort", () => starts.off(siteId, callback), { once: true });
  },
});
async function reviveAll(): Promise<void> {
  try {
    await reviveServing(host, await databasesStillOut({ engine, records }));
  } catch (error) {
    log("error", "What ended with the engine may not run again", { error });
  }
}
const out = new Set<string>();
const onCrash = (crash: Crash) => desk.crashed(crash);
const keeper = new Keeper({ engine, ingress, records, agentId: config.agentId, out, onCrash, isHandingOver });
let isBack = false;
const readdressNext = openReaddressing(host);
watchSites(
  {
    engine,
    ingress,
    records,
    agentId: config.agentId,
    out,
    onStart(siteId, containerId) {
      databases.changed();
      starts.emit(siteId, containerId);
      // A container that Docker restarted by itself may have another address.
      readdressNext(siteId, containerId);
      if (publicAccess.has(siteId)) void isolation.refresh();
    },
    onEnd(siteId, containerId) {
      databases.changed();
      if (isId("database", siteId)) inventory.doubt();
      // Requests go to the other replicas meanwhile.
      readdressNext(siteId, containerId);
      keeper.doubt(containerId);
    },
    onConnect() {
      databases.changed();
      // An engine that was restarted has written its own rules anew.
      const isSafe = isolation.refresh();
      if (isBack) void isSafe.then(reviveAll);
      keeper.doubtAll();
      isBack = true;
    },
    onCrash,
    onDatabaseOut: (crash) => desk.crashed(crash),
  },
  stopping.signal,
);
const journal = openJournal(join(config.stateDirectory, "journal.db"));
const runner = new Runner({ host, journal, handle, slots: config.slots, commandSlots: config.commandSlots });
const inventory = new InventoryReporter({
  host,
  isWorkingOn: (id) => runner.isWorkingOn(id),
  out: () => databasesStillOut({ engine, records }),
});
const diskLookMs = 2000;
const keeperLookMs = 5000;
const logLookMs = 2000;
const healthLookMs = 30_000;
const sampleMs = config.sampleSeconds * 1000;
const diskMb = (siteId: string) => diskUse.totalMb(siteId);
startSampling(
  { engine, ingress, records, intervalMs: sampleMs, databases: databases.list, diskMb },
  stopping.signal,
);
diskUse.watch(sampleMs, stopping.signal, () => desk.measured());
diskGuard.watch(diskLookMs, stopping.signal);
keeper.watch(keeperLookMs, stopping.signal);
new LogGuard({ engine, records, agentId: config.agentId }).watch(logLookMs, stopping.signal);
new HealthWatch({ engine, ingress, records, agentId: config.agentId }).watch(healthLookMs, stopping.signal);

const ingressReplaced = () => runner.ingressReplaced(new Date());
const routesFile = join(config.stateDirectory, "ingress", "routes.json");
void watchIngress(
  partsOf(config.ingress, {
    routesFile,
    engine,
    spec: ingressContainer(config.agentId, config.ingress).spec,
  }),
  { signal: stopping.signal, onReplaced: ingressReplaced },
);
engine.watchContainers({ [label.ingress]: config.agentId }, stopping.signal, {
  since: () => null,
  onEvent({ action }) {
    if (action !== "oom") return;
    log("error", "The ingress has had all the memory it may have, and is started again where it ended");
    ingressReplaced();
  },
});
await adoptCommands(host, journal, runner);
const endLink = startLink({
  url: config.controlPlaneUrl,
  token: config.hostToken.reveal(),
  runner,
  desk,
  inventory,
  agentVersion,
  lostSites: () => ingress.lost().slice(0, maxLostSites) as Id<"site">[],
  onWelcome:
    config.autoUpdate && import.meta.filename.endsWith(".mjs")
      ? updater({
          siteUrl: config.controlPlaneUrl,
          file: import.meta.filename,
          restart: async (version) => {
            log("info", "Another agent is installed: this one ends when its jobs have", { version });
            await runner.finish();
            await shutdown();
          },
          onError: (error) => log("error", "The agent was not updated", { error }),
        })
      : undefined,
  random: Math.random,
  facts: () => {
    const disk = statfsSync(config.stateDirectory);
    return {
      cpuCount: cpus().length,
      memoryMb: Math.floor(totalmem() / 1024 / 1024),
      diskFreeMb: Math.floor((disk.bavail * disk.bsize) / 1024 / 1024),
    };
  },
});

async function shutdown(): Promise<void> {
  stopping.abort();
  endLink();
  await Promise.race([runner.shutdown(), delay(5000)]);
  process.exit(0);
}
process.once("SIGTERM", () => void shutdown());
process.once("SIGINT", () => void shutdown());
if (process.env["BERTH_EXIT_WITH_PARENT"] === "1") process.stdin.on("end", () => void shutdown()).resume();

async function untilAnswers(engine: Engine): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await engine.ping();
    } catch (error) {
      if (attempt % 30 === 0) log("warn", "The Docker engine does not answer yet", { error });
      await delay(1000);
    }
  }
}

/** What is wrong with the engine may be mended without this process: it looks again. */
async function untilFit(engine: Engine): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const facts = await engine.facts();
    const reason = unfitReason(facts);
    if (reason === null) return facts.usesNftables ? log("warn", nftablesLimit) : undefined;
    if (attempt % 30 === 0) log("error", reason);
    await delay(10_000);
  }
}

/** Says whether the engine is one that Berth works with, and ends. */
async function check(socketPath: string): Promise<never> {
  const facts = await createEngine({ socketPath })
    .facts()
    .catch((error: unknown) => {
      console.error(`Docker does not answer at ${socketPath}: ${String(error)}`);
      return process.exit(1);
    });
  const reason = unfitReason(facts);
  if (reason !== null) console.error(reason);
  else if (facts.usesNftables) console.log(nftablesLimit);
  return process.exit(reason === null ? 0 : 1);
}

/** Caddy runs, with this configuration; one that does is left alone. */
async function ensureIngress(): Promise<void> {
  const { spec } = ingressContainer(config.agentId, config.ingress);
  const found = await engine.inspectContainer(spec.name);
  const isAsWanted = found?.labels[label.config] === spec.Labels[label.config];
  if (!isAsWanted) await untilHas(ingressImage);
  if (found && !isAsWanted) await engine.removeContainer(found.id);
  await startIngress(engine, spec);
}

/** Seldom enough for a registry that counts who asks. */
async function untilHas(image: string): Promise<void> {
  for (;;) {
    try {
      return await ensureImage(host, image, stopping.signal);
    } catch (error) {
      log("error", "This host has no image for its ingress, and serves nothing until it has", { error });
      await delay(30_000);
    }
  }
}
