import { setTimeout as delay } from "node:timers/promises";
import type { Fingerprint } from "../../../protocol/agent/backups.ts";
import { refusalIn, ServerRefusal } from "../server-refusal.ts";
import type { Copier, Server } from "../backups/copier.ts";
import { demandSuccess } from "../backups/copier.ts";
import { strayMark } from "../backups/strays.ts";
import { adminEnv, asAdmin, redisClient } from "./server.ts";

const file = "dump.rdb";
const pauseMs = 250;
/** A host makes one backup at a time: it does not wait longer than this for another child process of the server. */
const beginsWithinMs = 5 * 60_000;
/** CLIENT PAUSE, or a long command of the owner's, holds back every answer, and with it the host's other backups. */
const answersWithinMs = 60_000;
/** A save that writes no key for this long is stuck. */
const stuckAfterMs = 10 * 60_000;

/** The client's output; the server that loads a copy has no users. */
async function ask({ engine, id, spec, signal }: Server, input: string, anonymous = false): Promise<string> {
  const program = {
    command: anonymous ? redisClient() : redisClient(...asAdmin),
    env: anonymous ? [strayMark] : [strayMark, ...adminEnv(spec.adminPassword)],
    input,
  };
  const late = AbortSignal.timeout(answersWithinMs);
  const { exitCode, stdout, stderr } = await engine
    .execute(id, program, AbortSignal.any([signal, late]))
    .catch((error: unknown) => {
      signal.throwIfAborted();
      throw late.aborted ? refused("its server has not answered for a minute") : error;
    });
  if (exitCode !== 0)
    throw new ServerRefusal(refusalIn(stderr), `redis-cli ended with ${exitCode}: ${stderr.slice(0, 300)}`);
  return stdout;
}

const valueOf = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(info)?.[1];

/** Parses `db0:keys=3,expires=1,…`: each numbered database, its keys, and how many of them expire. */
const keyspaceOf = (info: string): Fingerprint => ({
  tables: Array.from(
    info.matchAll(/^db(\d+):keys=(\d+),expires=(\d+)/gm),
    ([, number, rows = "0", checksum = "0"]) => ({
      name: `db${number}`,
      rows,
      checksum,
    }),
  ),
  objects: {},
  counters: [],
});

export const redis: Copier = {
  /**
   * Writes are paused between counting the keys and the fork of the server. The copy is the fork's; the server that
   * loads it checks the file's CRC-64.
   */
  async copy(server, take) {
    const { engine, id, signal } = server;
    const held = await fork(server);
    try {
      await untilSaved(server);
      const copy = await engine.pipe(id, { command: ["cat", `/data/${file}`], env: [strayMark] });
      copy.input.end();
      try {
        await take(copy.output);
        await demandSuccess("cat", copy);
      } finally {
        copy.close();
      }
    } finally {
      // A save cannot be cancelled: wait for its end, so that its file can be removed.
      if (signal.aborted)
        await untilSaved({ ...server, signal: new AbortController().signal }).catch(() => undefined);
      await engine.execute(id, { command: ["rm", "-f", `/data/${file}`] });
    }
    return held;
  },

  // The loading server has no users, and stands in for the copy's owner until it is settled.
  fingerprint: async (server) => keyspaceOf(await ask(server, "INFO keyspace\n", true)),

  seed: {
    file,
    // A replica does not expire keys, so that it keeps all keys of the copy.
    command: [
      "--dir",
      "/data",
      "--dbfilename",
      file,
      "--appendonly",
      "no",
      "--save",
      "",
      "--replicaof",
      "127.0.0.1 1",
    ],
    ready: { command: redisClient("PING"), says: "PONG" },
  },

  /** The database's server reads an append-only file, which is rewritten. */
  async settle(server) {
    const said = await ask(server, "REPLICAOF NO ONE\nCONFIG SET appendonly yes\n", true);
    if (
      said
        .trim()
        .split(/\s+/)
        .some((word) => word !== "OK")
    )
      throw new Error(said);
    for (;;) {
      server.signal.throwIfAborted();
      const info = await ask(server, "INFO persistence\n", true);
      const isOver = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"].every(
        (name) => valueOf(info, name) === "0",
      );
      if (isOver && valueOf(info, "aof_enabled") === "1") {
        if (valueOf(info, "aof_last_bgrewrite_status") !== "ok")
          throw new Error("The append-only file could not be written");
        break;
      }
      await delay(pauseMs, undefined, { signal: server.signal });
    }
    await server.engine.execute(server.id, { command: ["rm", "-f", `/data/${file}`] });
  },
};

/** @throws ServerRefusal if it failed, or writes no key for too long */
async function untilSaved(server: Server): Promise<void> {
  let written: string | undefined;
  let since = performance.now();
  for (;;) {
    server.signal.throwIfAborted();
    const info = await ask(server, "INFO persistence\n");
    if (valueOf(info, "rdb_bgsave_in_progress") === "0") {
      if (valueOf(info, "rdb_last_bgsave_status") === "ok") return;
      const lines = await server.engine.lastLines(server.id, 5);
      // Scripts may print data into the server's log.
      throw new ServerRefusal("BGSAVE failed", `BGSAVE failed: ${lines.join(" | ")}`);
    }
    const now = performance.now();
    const keys = valueOf(info, "current_save_keys_processed");
    // Redis before 7.0 reports no keys.
    if (keys === undefined || keys !== written) [written, since] = [keys, now];
    if (now - since > stuckAfterMs) throw refused("its save makes no progress");
    await delay(pauseMs, undefined, { signal: server.signal });
  }
}

const refused = (reason: string) => new ServerRefusal(reason, `BGSAVE: ${reason}`);

/** Refusals that end by themselves: another child process of the server is writing, or the server loads its data. */
const passing = /in progress|child process|^LOADING/i;
/** Why the server cannot fork, which only its log says. */
const forkFailed = /Can't save in background: fork: [\w ]+/g;

/** Starts the save. @throws ServerRefusal if the server refuses it, at once unless that may pass */
async function fork(server: Server): Promise<Fingerprint> {
  const until = performance.now() + beginsWithinMs;
  for (;;) {
    server.signal.throwIfAborted();
    const said = await ask(server, "CLIENT PAUSE 5000 WRITE\nINFO keyspace\nBGSAVE\nCLIENT UNPAUSE\n");
    if (said.includes("Background saving started")) return keyspaceOf(said);
    const refusal = /^[A-Z]{3,}(?: .*)?$/m.exec(said)?.[0].trim() ?? "";
    if (!passing.test(refusal) || performance.now() > until) {
      if (refusal !== "ERR") throw refused(refusal);
      const lines = await server.engine.lastLines(server.id, 20);
      throw refused(lines.join("\n").match(forkFailed)?.at(-1) ?? refusal);
    }
    await delay(pauseMs * 4, undefined, { signal: server.signal });
  }
}
