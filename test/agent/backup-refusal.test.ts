import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { containerName } from "../../agent/docker/database-objects.ts";
import { redisClient } from "../../agent/databases/redis/server.ts";
import type { Job } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { after, closeMachines, Machine, openMachines } from "../support/crash-points.ts";
import { databaseSpec } from "../support/database-spec.ts";

beforeAll(openMachines);
afterAll(closeMachines);
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const databaseId = formatId("database", 1, new Uint8Array(10));
const database = databaseSpec({
  databaseId,
  accountId: formatId("account", 1, new Uint8Array(10)),
  type: "redis",
});
const jobOf = (kind: string, args: object) =>
  ({ id: formatId("job", 7, new Uint8Array(10)), kind: `database.${kind}`, args }) as unknown as Job;
const backUp = (type: "redis" | "mysql") =>
  jobOf("backup", {
    database: { ...database, type },
    backupId: formatId("backup", 1, new Uint8Array(10)),
    attempt: 1,
    serving: true,
  });

/** A machine with a server, whose programs end with these words from now on. */
async function machineSaying(stderr: string): Promise<Machine> {
  const machine = new Machine();
  machine.docker.state.images[database.image] = "sha256:redis";
  await after(machine, jobOf("provision", { database }));
  const { engine } = machine.docker;
  const execute = engine.execute.bind(engine);
  engine.execute = (id, program, signal) =>
    program.command[2] === redisClient()[2]
      ? Promise.resolve({ exitCode: 1, stdout: "", stderr })
      : execute(id, program, signal);
  engine.pipe = () =>
    Promise.resolve({
      input: new PassThrough(),
      output: Readable.from([]),
      isRunning: () => Promise.resolve(false),
      ended: () => Promise.resolve({ exitCode: 1, stderr }),
      close: () => undefined,
    });
  expect(machine.docker.find(containerName(databaseId))?.running).toBe(true);
  return machine;
}

it("a backup that fails says the server's own reason, and nothing of what the database holds", async () => {
  const tooMany = "ERROR 1040 (08004): Too many connections";
  const duplicate = "ERROR 1062 (23000) at line 3: Duplicate entry 'secret' for key 'PRIMARY'";
  const shown = "ERROR 1062 (23000) at line 3: Duplicate entry '…'";
  const noMemory = "MISCONF Can't save in background: fork: Cannot allocate memory";
  for (const [type, says, reason] of [
    ["mysql", tooMany, tooMany],
    ["mysql", `INSERT secret\n${duplicate}\n`, shown],
    ["redis", `${noMemory}\nsecret`, noMemory],
  ] as const)
    await expect(after(await machineSaying(says), backUp(type))).rejects.toThrow(
      `The database could not be copied: ${reason}. Try again, or ask the operator about its host.`,
    );
});

/** A machine whose Redis answers this to each BGSAVE, and this to each question about it; a minute passes with each. */
async function redisSaying(
  answers: { BGSAVE?: string; INFO?: string },
  log: string[] = [],
): Promise<Machine> {
  const machine = new Machine();
  machine.docker.state.images[database.image] = "sha256:redis";
  await after(machine, jobOf("provision", { database }));
  const { engine } = machine.docker;
  const execute = engine.execute.bind(engine);
  vi.useFakeTimers({ toFake: ["performance"] });
  engine.execute = (id, program, signal) => {
    const isBegin = program.input?.includes("BGSAVE") ?? false;
    const isQuestion = program.input?.includes("INFO persistence") ?? false;
    const stdout = isBegin ? answers.BGSAVE : isQuestion ? answers.INFO : undefined;
    if (stdout === undefined) return execute(id, program, signal);
    vi.advanceTimersByTime(60_000);
    return Promise.resolve({ exitCode: 0, stdout, stderr: "" });
  };
  engine.lastLines = () => Promise.resolve(log);
  return machine;
}
const begun = (said: string) => `OK\n# Keyspace\ndb0:keys=1,expires=0,avg_ttl=0\n\n${said}\n\nOK\n`;

it.each([
  [
    "MISCONF Errors writing to the AOF file: Input/output error",
    [],
    "MISCONF Errors writing to the AOF file: Input/output error",
  ],
  [
    "ERR",
    ["9:M 29 Nov 2026 06:00:00.000 # Can't save in background: fork: Cannot allocate memory", "secret"],
    "Can't save in background: fork: Cannot allocate memory",
  ],
])("a Redis that refuses to save holds up no other backup: %s", async (said, log, reason) => {
  const machine = await redisSaying({ BGSAVE: begun(said) }, log);
  await expect(after(machine, backUp("redis"))).rejects.toThrow(
    `The database could not be copied: ${reason}. Try again`,
  );
});

it("a Redis whose other child process does not end, or whose save makes no progress, holds up others for minutes at most", async () => {
  const busy = "ERR Another child process is active (AOF?): can't BGSAVE right now.";
  await expect(after(await redisSaying({ BGSAVE: begun(busy) }), backUp("redis"))).rejects.toThrow(busy);
  vi.useRealTimers();
  const INFO = "rdb_bgsave_in_progress:1\r\ncurrent_save_keys_processed:7\r\n";
  await expect(after(await redisSaying({ INFO }), backUp("redis"))).rejects.toThrow(
    /its save makes no progress/,
  );
});

it("a Redis that answers nothing, as while its owner pauses all clients, holds up others for a minute at most", async () => {
  const machine = await redisSaying({});
  const { engine } = machine.docker;
  const execute = engine.execute.bind(engine);
  engine.execute = async (id, program, signal) => {
    if (!program.input?.includes("BGSAVE")) return execute(id, program, signal);
    await once(signal as AbortSignal, "abort");
    throw signal?.reason;
  };
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const asked = vi.spyOn(AbortSignal, "timeout").mockImplementation(() => timeout(20));
  await expect(after(machine, backUp("redis"))).rejects.toThrow(
    "The database could not be copied: its server has not answered for a minute. Try again",
  );
  expect(asked).toHaveBeenCalledWith(60_000);
});
