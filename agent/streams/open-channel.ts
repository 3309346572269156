import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { StreamTarget } from "../../protocol/agent/messages.ts";
import { containerName } from "../docker/database-objects.ts";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { networkName } from "../docker/specs.ts";
import { servingIds, type Ingress } from "../ingress/ingress.ts";
import { NotOpened, type Channel, type OpenChannel } from "./stream-server.ts";

type Means = {
  engine: Pick<Engine, "inspectContainer" | "terminal">;
  ingress: Pick<Ingress, "current">;
  agentId: string;
};
type To<Kind extends StreamTarget["kind"]> = Extract<StreamTarget, { kind: Kind }>;

const connectMs = 5000;
/** A server whose container vanished without a word is noticed. */
const keepAliveMs = 30_000;
/** Between SIGHUP and SIGKILL. */
const hangUpMs = 2000;

export const openChannels =
  (means: Means): OpenChannel =>
  (target, signal) =>
    target.kind === "database" ? toDatabase(means, target, signal) : toTerminal(means, target);

async function toDatabase(
  { engine, agentId }: Means,
  { databaseId, port }: To<"database">,
  signal: AbortSignal,
): Promise<Channel> {
  const found = await engine.inspectContainer(containerName(databaseId));
  const isOurs = found?.running && found.labels[label.agent] === agentId;
  const host = isOurs ? found.addresses[networkName(found.labels[label.account] ?? "")] : undefined;
  if (!host)
    throw new NotOpened("The database's server is not running at the moment: try again in a minute.");
  const duplex = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs });
  try {
    await once(duplex, "connect", { signal: AbortSignal.any([signal, AbortSignal.timeout(connectMs)]) });
  } catch {
    duplex.on("error", () => undefined).destroy();
    throw new NotOpened("The database's server does not answer: try again in a minute.");
  }
  return { duplex, exitCode: () => Promise.resolve(null), release: () => Promise.resolve() };
}

/** bash where the image has one. */
const shell = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";

async function toTerminal(
  { engine, ingress, agentId }: Means,
  { siteId, command, terminal, columns, rows }: To<"terminal">,
): Promise<Channel> {
  const containers = await Promise.all(servingIds(ingress, siteId).map((id) => engine.inspectContainer(id)));
  const container = containers.find((one) => one?.running && one.labels[label.agent] === agentId);
  if (!container) throw new NotOpened("The site is not running at the moment: start it first.");
  const program = await engine.terminal(
    container.id,
    { command: ["/bin/sh", "-c", command ?? shell], env: [`TERM=${terminal}`] },
    { columns, rows },
  );
  return {
    duplex: program.duplex,
    resize: (...size) => program.resize({ columns: size[0], rows: size[1] }),
    exitCode: async () => (await program.state()).exitCode,
    /** The engine lets a program run on when its connection ends. */
    async release() {
      for (const signal of ["SIGHUP", "SIGKILL"] as const) {
        const { pid } = await program.state();
        if (pid === null || !(await isIn(container.id, pid))) return;
        try {
          process.kill(pid, signal);
        } catch {
          return;
        }
        await delay(hangUpMs);
      }
    },
  };
}

/** Its process may have ended, and the id may be that of another one. */
async function isIn(containerId: string, pid: number): Promise<boolean> {
  const groups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  return groups.includes(containerId);
}
