import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Certificate } from "../protocol/agent/certificates.ts";
import { alone } from "./alone.ts";
import { maxLostSites, type FailingCheck } from "../protocol/agent/messages.ts";
import { isId, type Id } from "../protocol/ids.ts";
import { isWildcard } from "../protocol/wildcards.ts";
import type { AgentConfig } from "./config.ts";
import { createStore } from "./databases/backups/store.ts";
import { openInspection } from "./databases/inspect/index.ts";
import { databaseExits } from "./databases/exits.ts";
import { openPublicAccess, type PublicAccess } from "./databases/public-access.ts";
import { openRunningDatabases, type RunningDatabases } from "./databases/running.ts";
import { WriteLimits } from "./databases/write-limits.ts";
import { createEngine } from "./docker/client.ts";
import type { Engine } from "./docker/engine.ts";
import { label } from "./docker/labels.ts";
import { handle } from "./handlers/index.ts";
import type { Host } from "./host.ts";
import { openSourceInspection } from "./image-build/inspect/index.ts";
import { openNewerImages } from "./image-build/newer-images.ts";
import { Readers } from "./image-build/readers.ts";
import { openSharedBases } from "./image-build/shared-bases.ts";
import { openImageProvider } from "./image-build/image-provider.ts";
import { certificatesFileOf, writeCertificates } from "./ingress/certificates.ts";
import { openPeers, peersFileOf } from "./ingress/peers.ts";
import { certificateOf } from "./ingress/certificate.ts";
import { ingressContainer } from "./ingress/container.ts";
import { caddyPlace, giveCaddy } from "./ingress/obtained.ts";
import { openRoutes } from "./ingress/routes.ts";
import { partsOf, watchIngress } from "./ingress/watch.ts";
import { idsHeld, keptOf, removeKept, removeKeptVolumes, volumesKept } from "./inventory/kept.ts";
import { InventoryReporter } from "./inventory/reporter.ts";
import { openBuildRoom } from "./isolation/build-room.ts";
import { openIsolation, type Isolation } from "./isolation/isolation.ts";
import { openJournal } from "./journal.ts";
import { startLink } from "./link.ts";
import { log } from "./log.ts";
import { QuestionServer } from "./question-server.ts";
import { Runner } from "./runner.ts";
import { AccessLog } from "./running/access-log.ts";
import { ContainerSupervisor } from "./running/container-supervisor.ts";
import { databasesStillOut } from "./running/databases-out.ts";
import { DiskGuard } from "./running/disk-guard.ts";
import { clockProblem, diskCondition } from "./running/condition.ts";
import { every } from "./running/every.ts";
import { DiskUse, nearPack } from "./running/disk-use.ts";
import { HealthWatch } from "./running/health.ts";
import { LimitWarnings, type NearLimit } from "./running/limit-warnings.ts";
import { LogGuard } from "./running/log-guard.ts";
import { openRecords, type Crash, type DatabaseCrash, type Records } from "./running/records.ts";
import { openRequestRecords, type RequestRecords } from "./running/request-records.ts";
import { machineUse, watchProcessors } from "./running/machine-use.ts";
import { watchEngine } from "./running/watch-engine.ts";
import { startSampling } from "./running/sampler.ts";
import { keepLastLines } from "./running/site-log.ts";
import { watchSites } from "./running/watch.ts";
import { isHandingOver } from "./sites/hand-over.ts";
import { openReaddressing } from "./sites/readdress.ts";
import { openRetirement } from "./sites/retire.ts";
import { adoptCommands } from "./startup/adopt-commands.ts";
import { untilEngineAnswers, untilEngineIsFit, watchOldPrograms } from "./startup/engine-ready.ts";
import { openIngressContainer, type IngressContainer } from "./startup/ensure-ingress.ts";
import { reviveServing, sweep } from "./startup/sweep.ts";
import { openChannels } from "./streams/open-channel.ts";
import { StreamServer } from "./streams/stream-server.ts";
import { openUpdates, sha256Of, type Updates } from "./update.ts";
import { agentVersion, versionOfProgram } from "./version.ts";

const diskLookMs = 2000;
const supervisorLookMs = 5000;
const logLookMs = 2000;
/** The shortest interval that a site may ask for. */
const healthLookMs = 10_000;
const accessLogLookMs = 1000;
const conditionLookMs = 10_000;
const stopWithinMs = 5000;

type Agent = {
  /** Resolves once the agent serves, watches and connects, which may have to wait for the engine. */
  start(): Promise<void>;
  /** Stops this process's work; containers, commands and the ingress keep running. */
  stop(): Promise<void>;
};
type Program = {
  /** The file this process runs; updates replace it if it is the one distributed to hosts. */
  programFile: string;
  /** Ends the process after an update; its supervisor starts the new program. */
  exit: () => void;
};

/** Wires one agent together. Nothing runs before `start`. */
export function compose(config: AgentConfig, program: Program): Agent {
  const stopping = new AbortController();
  let end: (() => Promise<void>) | undefined;
  return {
    async start() {
      makeFolders(config);
      const foundation = openFoundation(config);
      const { engine, isolation } = foundation;
      // Before the engine is up, because it starts the sites by itself.
      await isolation.refresh();
      await untilEngineAnswers(engine);
      await untilEngineIsFit(engine);
      const old = await watchOldPrograms(engine, stopping.signal);

      const means = await openMeans(config, foundation);
      const { host, records } = means;
      await isolation.refresh();
      isolation.watch(stopping.signal);
      const { spec } = ingressContainer(config.agentId, config.ingress);
      const ingress = openIngressContainer(host, spec, config.ingress, stopping.signal);
      await ingress.ensure();
      await sweep(host, await databasesStillOut({ engine, records }));

      const work = openWork(config, means, stopping.signal);
      watch(config, means, work, stopping.signal);
      const silence = superviseIngress(config, host, { runner: work.runner, ingress }, stopping.signal);
      const updates = updatesOf(config, work, program);
      const problems = {
        engine: watchEngine(engine, stopping.signal, (answers) => work.runner.engineIs(answers)),
        ingress: () => ingress.problem() ?? silence(),
        update: () => updates?.problem() ?? null,
        old,
      };
      await watchCondition(config, means, work, problems, stopping.signal);
      await adoptCommands(host, work.journal, work.runner);
      const endLink = connect(config, means, work, program, updates);
      end = async () => {
        endLink();
        await Promise.race([work.runner.shutdown(), delay(stopWithinMs)]);
      };
    },
    async stop() {
      stopping.abort();
      await end?.();
    },
  };
}

const workDirectoryOf = (config: AgentConfig): string => join(config.stateDirectory, "work");
const routesFileOf = (config: AgentConfig): string => join(config.stateDirectory, "ingress", "routes.json");

/** Not by umask, which Git would also apply to the files that images are built from. */
function makeFolders(config: AgentConfig): void {
  for (const folder of [
    config.stateDirectory,
    workDirectoryOf(config),
    join(config.stateDirectory, "ingress"),
  ]) {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o700);
  }
}

type Foundation = {
  engine: Engine;
  publicAccess: PublicAccess;
  isolation: Isolation & { watch(signal: AbortSignal): void };
};

/** The parts that can be opened while no engine answers. */
function openFoundation(config: AgentConfig): Foundation {
  const { agentId, stateDirectory } = config;
  const engine = createEngine({ socketPath: config.dockerSocket });
  const publicAccess = openPublicAccess(join(stateDirectory, "public-access"), agentId, config.publicAddress);
  const publicPorts = () => publicAccess.publicPorts(engine);
  return {
    engine,
    publicAccess,
    isolation: openIsolation({ agentId, engine, publicPorts, ...config.firewall }),
  };
}

type Means = {
  host: Host;
  records: Records;
  requests: RequestRecords;
  databases: RunningDatabases;
  diskUse: DiskUse;
};

/** The means of jobs, watchers and questions. */
async function openMeans(
  config: AgentConfig,
  { engine, publicAccess, isolation }: Foundation,
): Promise<Means> {
  const { agentId, stateDirectory, settings } = config;
  const ours = await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId });
  const ingress = openRoutes(routesFileOf(config), config.ingress.statusPort, [
    ...new Set(ours.flatMap(({ labels }) => labels[label.site] || [])),
  ]);
  const records = openRecords(join(stateDirectory, "running.db"));
  const requests = openRequestRecords(join(stateDirectory, "requests.db"));
  const databases = openRunningDatabases(engine, agentId);
  const diskUse = new DiskUse({ engine, ingress, records, databases: databases.list });
  const workDirectory = workDirectoryOf(config);
  const buildRoom = openBuildRoom({ engine, workDirectory, slots: config.slots, ...config.builds });
  const host: Host = {
    agentId,
    engine,
    isolation,
    publicAccess,
    buildRoom,
    sharedBases: openSharedBases({
      engine,
      enter: async () => {
        await isolation.demand();
        return buildRoom.enter();
      },
      // No registry can ever answer for it.
      repository: `berth.invalid/${config.imageRepository("shared-bases")}`,
      buildCaFile: settings.buildCaFile,
    }),
    newerImages: openNewerImages({
      engine,
      receive: () => buildRoom.receive("image"),
      localImages: settings.localImages ?? [],
      file: join(stateDirectory, "pulled-images.json"),
    }),
    ...(config.imageProvider && { provideImage: openImageProvider(config.imageProvider) }),
    backups: createStore({ url: config.controlPlaneUrl, token: config.hostToken.reveal() }),
    workDirectory,
    readers: new Readers(join(stateDirectory, "readers")),
    fileTimes: (siteId) => join(stateDirectory, "file-times", `${siteId}.json`),
    settings,
    imageRepository: config.imageRepository,
    ingress,
    volumesMb: async (siteId) => {
      const sizes = (await diskUse.of(siteId, 0)).volumes.map(({ sizeMb }) => sizeMb);
      return sizes.reduce<number | null>((sum, one) => (sum === null || one === null ? null : sum + one), 0);
    },
    ...openRetirement({
      engine,
      agentId,
      patience: settings,
      drains: records,
      keepLastLines: (containerId) => keepLastLines({ engine, records }, containerId),
      onError: (error) => log("error", "A retired container was not removed", { error }),
    }),
  };
  return { host, records, requests, databases, diskUse };
}

type Work = ReturnType<typeof openWork>;

/** The parts that talk to the control plane: jobs, questions and reports. */
function openWork(config: AgentConfig, { host, records, requests, diskUse }: Means, signal: AbortSignal) {
  const { agentId, engine, ingress } = host;
  const processors = watchProcessors(signal);
  const starts = new EventEmitter<Record<string, [containerId: string]>>().setMaxListeners(0);
  const questionServer = new QuestionServer({
    engine,
    agentId,
    ingress,
    records,
    requests,
    diskUse,
    imageRepository: host.imageRepository,
    kept: {
      held: () => idsHeld(host),
      of: (ids) => keptOf(host, ids),
      remove: (id) => removeKept(host, id),
      volumesOf: (databases) => volumesKept(host, databases),
      removeVolumes: (database) => removeKeptVolumes(host, database),
    },
    inspect: openInspection({
      engine,
      agentId,
      useOnce: (nonce, expiresAt) => records.useOnce(nonce, expiresAt, new Date()),
    }),
    inspectSource: openSourceInspection(host),
    certificate: (asked, signal) =>
      certificateOf({ engine, ingress, agentId, settings: config.ingress }, asked, signal),
    machine: () => machineUse(processors, () => host.buildRoom.disk()),
    diskFreeMb: async () => {
      const disk = await host.buildRoom.disk();
      return disk && Math.floor(disk.freeBytes / 1024 ** 2);
    },
    onStart(siteId, callback, signal) {
      starts.on(siteId, callback);
      signal.addEventListener("abort", () => starts.off(siteId, callback), { once: true });
    },
  });
  const streams = new StreamServer(openChannels({ engine, ingress, agentId }));
  const journal = openJournal(join(config.stateDirectory, "journal.db"));
  const runner = new Runner({
    host,
    journal,
    handle,
    slots: config.slots,
    commandSlots: config.commandSlots,
  });
  const inventory = new InventoryReporter({
    host,
    isWorkingOn: (id) => runner.isWorkingOn(id),
    out: () => databasesStillOut({ engine, records }),
  });
  return { starts, questionServer, streams, journal, runner, inventory };
}

/** Starts all watchers of running containers, until the signal aborts. */
function watch(config: AgentConfig, means: Means, work: Work, signal: AbortSignal): void {
  const { host, records, requests, databases, diskUse } = means;
  const { agentId, engine, ingress } = host;
  const { questionServer } = work;
  const onCrash = (crash: Crash | DatabaseCrash) => questionServer.crashed(crash);
  const warnings = new LimitWarnings((near) => questionServer.limitNear(near));
  const onNear = (id: string, of: NearLimit["of"], detail: string) => {
    if (isId("site", id) || isId("database", id)) warnings.tell({ resourceId: id, of, detail });
  };
  const diskGuard = new DiskGuard({
    engine,
    ingress,
    records,
    agentId,
    diskUse,
    databases: databases.list,
    disk: () => host.buildRoom.disk(),
    minFreeMb: config.builds.minFreeDiskMb,
    onCrash,
  });
  const writeLimits = new WriteLimits({ engine, records });
  diskUse.listen({
    onSite: (holding) => {
      const detail = nearPack(holding);
      if (detail !== null) onNear(holding.siteId, "disk", detail);
      void diskGuard
        .judge(holding)
        .catch((error) =>
          log("error", "A site over its disk was not stopped", { siteId: holding.siteId, error }),
        );
    },
    onDatabase: (holding) => writeLimits.judge(holding, diskGuard.isShort),
  });
  const onMemory = (id: string, detail: string) => onNear(id, "memory", detail);
  const stopped = new Set<string>();
  const supervisor = new ContainerSupervisor({
    engine,
    ingress,
    records,
    agentId,
    out: stopped,
    onCrash,
    isHandingOver,
  });
  watchContainers(means, work, { supervisor, stopped, onCrash, onOutOfMemory: onMemory }, signal);

  const sampleMs = config.sampleSeconds * 1000;
  const diskMb = (siteId: string) => diskUse.totalMb(siteId);
  startSampling(
    {
      engine,
      ingress,
      records,
      intervalMs: sampleMs,
      databases: databases.list,
      heldDatabases: databases.held,
      diskMb,
      onMemoryNear: onMemory,
    },
    signal,
  );
  diskUse.watch(sampleMs, signal, () => questionServer.measured());
  diskGuard.watch(diskLookMs, signal);
  supervisor.watch(supervisorLookMs, signal);
  new LogGuard({ engine, records, agentId }).watch(logLookMs, signal);
  const onFailing = (all: FailingCheck[]) => questionServer.checked(all);
  new HealthWatch({ engine, ingress, records, agentId, onFailing }).watch(healthLookMs, signal);
  new AccessLog({ engine, ingress, requests, agentId }).watch(accessLogLookMs, signal);
}

function watchContainers(
  { host, records, databases }: Means,
  { starts, inventory }: Work,
  {
    supervisor,
    stopped,
    onCrash,
    onOutOfMemory,
  }: {
    supervisor: ContainerSupervisor;
    stopped: Set<string>;
    onCrash: (crash: Crash | DatabaseCrash) => void;
    onOutOfMemory: (id: string, detail: string) => void;
  },
  signal: AbortSignal,
): void {
  const { agentId, engine, ingress, isolation, publicAccess } = host;
  const readdressNext = openReaddressing(host, signal);
  let isBack = false;
  const reviveAll = async () => {
    try {
      await reviveServing(host, await databasesStillOut({ engine, records }));
    } catch (error) {
      log("error", "Containers that ended with the engine were not all started again", { error });
    }
  };
  watchSites(
    {
      engine,
      ingress,
      records,
      agentId,
      out: stopped,
      onStart(siteId, containerId) {
        databases.changed();
        starts.emit(siteId, containerId);
        // A container that Docker restarted may have another address.
        readdressNext(siteId, containerId);
        if (publicAccess.has(siteId)) void isolation.refresh();
      },
      onEnd(siteId, containerId) {
        databases.changed();
        if (isId("database", siteId)) inventory.doubt();
        // Requests go to the other replicas meanwhile.
        readdressNext(siteId, containerId);
        supervisor.doubt(containerId);
      },
      onConnect() {
        databases.changed();
        // A restarted engine has rewritten its own rules.
        const isSafe = isolation.refresh();
        if (isBack) void isSafe.then(reviveAll);
        supervisor.doubtAll();
        isBack = true;
      },
      onCrash,
      onDatabaseOut: onCrash,
      onOutOfMemory,
      databaseExits: databaseExits(engine),
    },
    signal,
  );
}

/**
 * Replaces hanging parts of the ingress; the control plane is notified, because visitors may have been affected.
 * @returns why no site can be served, as far as it was not mended; null: sites can be
 */
function superviseIngress(
  config: AgentConfig,
  { engine }: Host,
  { runner, ingress }: { runner: Runner; ingress: IngressContainer },
  signal: AbortSignal,
): () => string | null {
  let problem: string | null = null;
  const onProblem = (found: string | null) => void (problem = found);
  const onReplaced = () => runner.ingressReplaced(new Date());
  const parts = partsOf(config.ingress, { routesFile: routesFileOf(config), renewCaddy: ingress.renew });
  void watchIngress(parts, { signal, onReplaced, onProblem });
  /** The engine may have ended while the ingress was replaced. One without our containers has another data directory: it is not ours. */
  async function ensureAgain(): Promise<void> {
    const found = await engine.listContainers({ [label.agent]: config.agentId });
    if (found.length > 0) await ingress.ensure();
  }
  engine.watchContainers({ [label.ingress]: config.agentId }, signal, {
    since: () => null,
    onConnect: () =>
      void ensureAgain().catch((error: unknown) => log("error", "The ingress was not looked at", { error })),
    onEvent({ action }) {
      if (action !== "oom") return;
      log("error", "The ingress reached its memory limit; it is restarted if that ended it");
      onReplaced();
    },
  });
  return () => problem;
}

/** Resolves once the control plane can be told at its first connection, before a job is taken. */
function watchCondition(
  { builds }: AgentConfig,
  { host }: Means,
  { questionServer, inventory }: Work,
  problems: Record<"engine" | "ingress" | "update", () => string | null> & { old: () => string[] },
  signal: AbortSignal,
): Promise<void> {
  const look = () =>
    diskCondition(host.buildRoom, builds.minFreeDiskMb)
      .then((disk) =>
        questionServer.inCondition({
          disk,
          ingressProblem: problems.ingress(),
          updateProblem: problems.update(),
          machineProblems: [
            problems.engine(),
            clockProblem(Date.now(), inventory.serviceTimeMs()),
            ...problems.old(),
          ].filter((one) => one !== null),
        }),
      )
      .catch((error: unknown) => log("error", "The host's condition was not determined", { error }));
  every(conditionLookMs, signal, look);
  return look();
}

/** None if the file that runs is not the one distributed to hosts, or the operator turned updates off. */
function updatesOf(
  { autoUpdate, controlPlaneUrl }: AgentConfig,
  { runner }: Work,
  { programFile, exit }: Program,
): Updates | undefined {
  if (!autoUpdate || !programFile.endsWith(".mjs")) return undefined;
  return openUpdates({
    siteUrl: controlPlaneUrl,
    file: programFile,
    async restart(version) {
      log("info", "Another agent version is installed: this one exits when its jobs have ended", { version });
      await runner.finish();
      exit();
    },
    onError: (error) => log("error", "The agent was not updated", { error }),
  });
}

const notTaken = (error: unknown) =>
  log("error", "Which requests go to other hosts was not stored; those of before do", { error });

const notStored = (error: unknown) =>
  log("error", "The received certificates were not stored; the earlier ones are served", { error });

/** @returns a function that ends the link */
function connect(
  config: AgentConfig,
  { host }: Means,
  { runner, questionServer, streams, inventory }: Work,
  { programFile }: Program,
  updates: Updates | undefined,
): () => void {
  const peers = openPeers(peersFileOf(routesFileOf(config)), {
    address: config.ingress.address,
    port: config.peerPort,
  });
  return startLink({
    url: config.controlPlaneUrl,
    token: config.hostToken.reveal(),
    instance: randomUUID(),
    runner,
    questionServer,
    streams,
    inventory,
    agentVersion: programFile.endsWith(".mjs")
      ? versionOfProgram(sha256Of(readFileSync(programFile)))
      : agentVersion,
    lostSites: () => host.ingress.lost().slice(0, maxLostSites) as Id<"site">[],
    onWelcome: updates?.onWelcome,
    onCertificates({ certificates, awaited }) {
      const { tls } = config.ingress;
      if (tls?.addressKey === undefined) return;
      const [wildcards, single] = [true, false].map((is) =>
        certificates.filter(({ name }) => isWildcard(name) === is),
      ) as [Certificate[], Certificate[]];
      const { addressKey } = tls;
      const file = certificatesFileOf(routesFileOf(config));
      void alone(file, async () => {
        const place = await caddyPlace(host.engine, config.agentId, tls.directory).catch(() => null);
        writeCertificates(file, { addressKey, certificates: wildcards, awaited, place });
      }).catch(notStored);
      if (single.length > 0)
        void giveCaddy(host.engine, config.agentId, tls.directory, single).catch(notStored);
    },
    onPeers({ type: _type, forwards, ...told }) {
      try {
        peers.take(told);
        const bySite = forwards.map(({ siteId, ...forward }) => [siteId, forward] as const);
        void host.ingress.forward(Object.fromEntries(bySite)).catch(notTaken);
      } catch (error) {
        notTaken(error);
      }
    },
    random: Math.random,
    peer: peers.facts,
    facts: () => ({
      cpuCount: cpus().length,
      memoryMb: Math.floor(totalmem() / 1024 / 1024),
      diskFreeMb: 0,
    }),
  });
}
