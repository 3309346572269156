import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { defaultPatienceMs } from "../../agent/databases/backups/patience.ts";
import type { BackupStore } from "../../agent/databases/backups/store.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Host } from "../../agent/host.ts";
import type { JobRun } from "../../agent/job.ts";
import { RouteTable } from "../../agent/ingress/table.ts";
import type { Records } from "../../agent/running/records.ts";
import type { UploadComplete } from "../../protocol/agent/backups.ts";
import type { Job } from "../../protocol/agent/jobs.ts";
import { emptyDisk } from "./empty-disk.ts";
import { jobRun } from "./job-run.ts";
import { MemoryEngine } from "./memory-engine.ts";

/**
 * An agent that crashes before one of its steps: neither that nor any later one has an effect or an answer. A step is
 * a call that affects state outside the agent; crashing before one equals crashing after the previous one.
 */
class Ending {
  readonly steps: string[] = [];
  private readonly endsAt: number;
  private readonly reached = Promise.withResolvers<"ended">();
  private isOver = false;
  readonly reaching = this.reached.promise;

  constructor(endsAt = Number.POSITIVE_INFINITY) {
    this.endsAt = endsAt;
  }

  end(): void {
    this.isOver = true;
    this.reached.resolve("ended");
  }

  /**
   * @param effects the methods that are steps @param atOnce after the crash, the results of methods that return no
   * promise
   */
  wrap<T extends object>(
    means: T,
    effects: readonly (keyof T & string)[],
    atOnce: Partial<Record<keyof T, unknown>> = {},
  ): T {
    return new Proxy(means, {
      get: (target, name: keyof T & string) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return (...args: unknown[]) => {
          if (!this.isOver && effects.includes(name)) {
            if (this.steps.length === this.endsAt) this.end();
            else this.steps.push(name);
          }
          if (!this.isOver) return Reflect.apply(method, target, args) as unknown;
          return name in atOnce ? atOnce[name] : new Promise(() => undefined);
        };
      },
    });
  }
}

const engineEffects: (keyof Engine)[] = [
  "ensureNetwork",
  "removeNetwork",
  "createContainer",
  "startContainer",
  "stopContainer",
  "removeContainer",
  "ensureVolume",
  "removeVolume",
  "writeFiles",
  "execute",
  "pipe",
  "tagImage",
  "removeImage",
  "removeUnnamedImages",
  "build",
];

const routeEffects = [
  "route",
  "routeOnProbation",
  "settle",
  "takeBack",
  "park",
  "rule",
  "tell",
  "readdress",
  "withdraw",
  "unroute",
] as const;

/** Answers for every container; the responder acknowledges every version at once. */
const app = http.createServer((_, response) => void response.end());
const responder = http.createServer((_, response) => void response.end(String(Number.MAX_SAFE_INTEGER)));
let folder: string;
const portOf = (server: net.Server) => (server.address() as AddressInfo).port;
export const appPort = () => portOf(app);

export async function openMachines(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), "berth-crash-points-"));
  for (const server of [app, responder])
    await new Promise<void>((resolve) => void server.listen(0, "0.0.0.0", resolve));
}
export function closeMachines(): void {
  app.close();
  responder.close();
  rmSync(folder, { recursive: true });
}

type Kept = UploadComplete & { data: string };

/** An agent was ended during its work, so that its in-memory state still exists. */
let hasHung = false;

/** The state outside the agent: the engine, the host's files, and the control plane's store of backups. */
export class Machine {
  readonly docker: MemoryEngine;
  readonly stored: Map<string, Kept>;
  private readonly files = mkdtempSync(join(folder, "machine-"));

  constructor(docker = new MemoryEngine(), stored: Map<string, Kept> = new Map()) {
    this.docker = docker;
    this.stored = stored;
    mkdirSync(join(this.files, "work"));
  }

  copy(): Machine {
    const copy = new Machine(new MemoryEngine(this.docker.state), new Map(this.stored));
    cpSync(this.files, copy.files, { recursive: true });
    return copy;
  }

  /** An agent that has started here, or crashed while starting: it shares no in-memory state with earlier ones. */
  async agent({ endsAt, sweepEndsAt }: { endsAt?: number; sweepEndsAt?: number } = {}): Promise<Agent> {
    if (hasHung) vi.resetModules();
    hasHung = false;
    const { openRoutes } = await import("../../agent/ingress/routes.ts");
    const { openPublicAccess } = await import("../../agent/databases/public-access.ts");
    const { openRetirement } = await import("../../agent/sites/retire.ts");
    const { openRecords } = await import("../../agent/running/records.ts");
    const { sweep } = await import("../../agent/startup/sweep.ts");
    const { handle } = await import("../../agent/handlers/index.ts");
    const ending = new Ending(endsAt);
    const agentId = "agent";
    const patience = { drainSeconds: 0, drainMaxSeconds: 0 };
    const records = openRecords(join(this.files, "running.db"));
    const found = this.docker.state.containers.flatMap(({ labels }) => labels["berth.site"] || []);
    const routes = openRoutes(join(this.files, "routes.json"), portOf(responder), [...new Set(found)]);
    const access = openPublicAccess(join(this.files, "public-access"), agentId, "192.0.2.1");
    const hostWhich = (one: Ending) => {
      const engine = one.wrap(this.docker.engine, engineEffects);
      return {
        agentId,
        engine,
        ingress: one.wrap(routes, [...routeEffects], {
          current: null,
          fallback: null,
          sites: [],
          lost: [],
        }),
        publicAccess: one.wrap(access, ["set"], { set: false, has: false }),
        backups: one.wrap(this.store, ["begin", "put", "complete"]),
        workDirectory: join(this.files, "work"),
        settings: { buildCaFile: null, insecureGitHosts: [], probationSeconds: 0, ...patience },
        imageRepository: () => "berth-site/a",
        volumesMb: () => Promise.resolve(0),
        isolation: one.wrap(
          {
            demand: () => Promise.resolve(),
            refresh: () => Promise.resolve(),
            demandPublicAccess: () => Promise.resolve(),
          },
          [],
        ),
        buildRoom: {
          ...emptyDisk(),
          enter: () => Promise.resolve({ signal: new AbortController().signal, end: () => undefined }),
        },
        ...openRetirement({
          engine,
          agentId,
          patience,
          drains: one.wrap(records, ["drainUntil", "drained"], {
            drainUntil: undefined,
            drained: undefined,
            drainsUntil: null,
          }),
          keepLastLines: () => Promise.resolve(),
          onError: (error) => expect.fail(String(error)),
        }),
      } as unknown as Host;
    };
    const sweeping = new Ending(sweepEndsAt);
    await Promise.race([sweep(hostWhich(sweeping)), sweeping.reaching]);
    return new Agent(hostWhich(ending), ending, records, handle);
  }

  /** All objects, by names that do not depend on how they came about. */
  holds() {
    const { containers, networks, volumes, images, nameless, ran } = this.docker.state;
    const tagsOf = (image: string) => Object.keys(images).filter((tag) => images[tag] === image);
    return {
      containers: containers
        .map(({ name, image, env, command, running, mounts, users }) => ({
          name: withoutConfig(name),
          image: tagsOf(image),
          env,
          command,
          running,
          mounts,
          users: users.toSorted(),
        }))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      routes: this.routes(),
      networks,
      volumes,
      images: Object.keys(images).toSorted(),
      nameless,
      ran,
      work: readdirSync(join(this.files, "work")),
      publicAccess: this.read("public-access/ports.json", "{}"),
      stored: [...this.stored.values()],
    };
  }

  /** Each site's names, and the containers they are routed to, if those are reachable at that address. */
  private routes() {
    const table = RouteTable.parse(this.read("routes.json", '{"version":0,"sites":{}}'));
    return Object.entries(table.sites).map(([id, { hostnames, target, others, notice }]) => ({
      id,
      hostnames,
      notice,
      leadsTo:
        target &&
        [target, ...others].map(({ containerId, address }) => {
          const found = this.docker.find(containerId);
          return found?.running && found.address === address ? withoutConfig(found.name) : null;
        }),
    }));
  }

  get isServed(): boolean {
    return this.routes().every(({ leadsTo }) => leadsTo?.every((name) => name !== null));
  }

  private read(name: string, missing: string): unknown {
    try {
      return JSON.parse(readFileSync(join(this.files, name), "utf8"));
    } catch {
      return JSON.parse(missing);
    }
  }

  /** Stores and returns backups of one part; worker tests prove its leases. */
  private readonly store: BackupStore = {
    patienceMs: defaultPatienceMs,
    begin: ({ backupId }) => Promise.resolve(backupId),
    put: ({ backupId }, { bytes }) => {
      this.parts.set(backupId, bytes.toString());
      return Promise.resolve("part");
    },
    complete: ({ backupId }, upload) =>
      Promise.resolve(void this.stored.set(backupId, { ...upload, data: this.parts.get(backupId) ?? "" })),
    manifest: ({ backupId }) => {
      const { fingerprint, sha256, sizeBytes } = this.stored.get(backupId)!;
      const ids = { accountId: `acc_${"0".repeat(27)}`, databaseId: `db_${"0".repeat(27)}` };
      return Promise.resolve({ backupId, ...ids, fingerprint, sha256, sizeBytes });
    },
    read: ({ backupId }, offset) => {
      const bytes = Buffer.from(this.stored.get(backupId)!.data);
      const body = [bytes.subarray(offset)][Symbol.iterator]();
      return Promise.resolve({ totalBytes: bytes.length, body: body as unknown as AsyncIterable<Buffer> });
    },
  };
  private readonly parts = new Map<string, string>();
}

/** The name without the suffix that avoids a conflict. */
const withoutConfig = (name: string) => name.replace(/-[0-9a-f]{8}$/, "");

type Handle = (host: Host, job: Job, run: ReturnType<typeof jobRun>) => Promise<unknown>;

class Agent {
  private readonly host: Host;
  private readonly ending: Ending;
  private readonly records: Records;
  private readonly handle: Handle;

  constructor(host: Host, ending: Ending, records: Records, handle: Handle) {
    this.host = host;
    this.ending = ending;
    this.records = records;
    this.handle = handle;
  }

  get steps(): readonly string[] {
    return this.ending.steps;
  }

  /** The job's report; "ended": the agent crashed before it. */
  async does(job: Job, attempt = 1, given: Partial<JobRun> = {}): Promise<unknown> {
    const afterwards: (() => Promise<void>)[] = [];
    const { reaching } = this.ending;
    const run = jobRun({
      jobId: job.id,
      attempt,
      afterwards: (work) => void afterwards.push(work),
      ...given,
    });
    const result = await Promise.race([this.handle(this.host, job, run), reaching]);
    hasHung ||= result === "ended";
    if (result === "ended") return result;
    for (const work of afterwards) await Promise.race([work(), reaching]);
    await Promise.race([this.host.retired(), reaching]);
    return result;
  }

  close(): void {
    this.ending.end();
    this.records.close();
  }
}

/** The machine after these jobs as well. */
export async function after(machine: Machine, ...jobs: Job[]): Promise<Machine> {
  const agent = await machine.agent();
  for (const job of jobs) await agent.does(job);
  agent.close();
  return machine;
}

/** Without durations and anything else that differs between builds or certificates. */
const settled = (result: unknown) => ({
  ...(result as object),
  durations: 0,
  imageId: 0,
  imageDigest: 0,
  endsAt: 0,
});

/** What came of a job, also where that is its failure; the reason has a time in it. */
const outcome = (job: Promise<unknown>): Promise<unknown> =>
  job.catch((error: Error) => ({ failed: error.name }));

/**
 * Runs the job on copies of the machine: undisturbed, then with an agent that crashes before each step in turn and
 * after the last one. Each time follow another agent that crashes while starting, and one that does not, which is
 * offered the job again unless its end was reported.
 * @param serves when the site's names must be routed to running containers: at any crash, or once the next agent has
 * started
 * @returns the steps
 */
export async function throughAllCrashes(
  machine: Machine,
  job: Job,
  serves: "throughout" | "between agents" | "not",
  compared: (holds: ReturnType<Machine["holds"]>) => object = (holds) => holds,
): Promise<readonly string[]> {
  const undisturbed = machine.copy();
  const first = await undisturbed.agent();
  const wanted = await outcome(first.does(job));
  first.close();
  const { steps } = first;
  for (let at = 0; at <= steps.length; at++) {
    const where = `ended before step ${at} of ${steps.join(", ")}`;
    const copy = machine.copy();
    const ending = await copy.agent({ endsAt: at });
    const result = await outcome(ending.does(job));
    ending.close();
    if (serves === "throughout") expect(copy.isServed, where).toBe(true);
    (await copy.agent({ sweepEndsAt: at % 3 })).close();
    const next = await copy.agent();
    if (serves !== "not") expect(copy.isServed, `${where}, and another began`).toBe(true);
    if (result === "ended" || at === steps.length)
      expect(settled(await outcome(next.does(job, 2))), where).toEqual(settled(wanted));
    next.close();
    expect(compared(copy.holds()), where).toEqual(compared(undisturbed.holds()));
  }
  return steps;
}
