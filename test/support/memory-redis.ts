import { PassThrough, Readable } from "node:stream";
import { certificateFile } from "../../agent/databases/database-engine.ts";
import { redisClient } from "../../agent/databases/redis/server.ts";
import type { Piped, Program } from "../../agent/docker/engine.ts";
import type { MemoryContainer } from "./memory-container.ts";

// The part of Redis that agents use: its append-only file, its dump and its users are files.

type Files = Record<string, string>;
/** The append-only file: a JSON object of keys and values. */
export const changes = "appendonly.aof";
const client = redisClient();
const usersFile = "users.acl";
const dumpFile = "dump.rdb";

const nameOf = (line: string) => line.split(" ")[0] ?? "";

/** @returns false if a file it is told to read is missing, so that it ends */
export function starts(container: MemoryContainer, files: Files): boolean {
  const told = container.command.join(" ");
  if (told.includes("--tls-cert-file") && !container.files[certificateFile]) return false;
  if (told.includes("--aclfile") && files[usersFile] === undefined) return false;
  // A server that loads a dump has its append-only file rewritten later.
  if (told.includes(dumpFile)) container.files["loaded"] = files[dumpFile] ?? "{}";
  if (told.includes("--appendonly yes")) files[changes] ??= "{}";
  container.users = (files[usersFile] ?? "")
    .split("\n")
    .filter(Boolean)
    .map((line) => line.replace(/^user /, ""));
  return true;
}

/** @returns its output */
export function execute(container: MemoryContainer, files: Files, { command, input = "" }: Program): string {
  if (command[0] === "rm") delete files[dumpFile];
  if (command[2] !== client[2]) return "";
  return (input || command.slice(client.length).join(" "))
    .split("\n")
    .filter(Boolean)
    .map((line) => answer(container, files, line))
    .join("\n");
}

function answer(container: MemoryContainer, files: Files, line: string): string {
  const { users } = container;
  const keys = () => container.files["loaded"] ?? files[changes] ?? "{}";
  const [what = "", which = "", ...rest] = line.split(" ");
  switch (`${what} ${which}`.trim()) {
    case "PING":
      return "PONG";
    case "INFO server":
      return "redis_version:7.0.0";
    case "INFO keyspace":
      return `db0:keys=${Object.keys(JSON.parse(keys()) as object).length},expires=0,avg_ttl=0`;
    case "INFO persistence":
      return [
        "rdb_bgsave_in_progress:0",
        "rdb_last_bgsave_status:ok",
        "aof_rewrite_in_progress:0",
        "aof_rewrite_scheduled:0",
        `aof_enabled:${files[changes] === undefined ? 0 : 1}`,
        "aof_last_bgrewrite_status:ok",
      ].join("\n");
    case "BGSAVE":
      files[dumpFile] = keys();
      return "Background saving started";
    case "CONFIG SET":
      if (rest[0] === "appendonly") files[changes] = keys();
      return "OK";
    case "ACL SETUSER": {
      const set = rest.join(" ");
      container.users = [...users.filter((one) => nameOf(one) !== nameOf(set)), set];
      return "OK";
    }
    case "ACL DELUSER":
      container.users = users.filter((one) => nameOf(one) !== rest[0]);
      return "1";
    case "ACL USERS":
      return users.map(nameOf).join("\n");
    case "ACL SAVE":
      files[usersFile] = users.map((one) => `user ${one}\n`).join("");
      return "OK";
    case "CLIENT PAUSE":
    case "CLIENT UNPAUSE":
    case "REPLICAOF NO":
      return "OK";
    default:
      throw new Error(`No such command: ${line}`);
  }
}

/** `cat`, the only program whose output is piped. */
export const pipe = (files: Files, { command }: Omit<Program, "input">): Piped => ({
  input: new PassThrough(),
  output: Readable.from([Buffer.from(files[command[1]?.replace(/^\/data\//, "") ?? ""] ?? "")]),
  isRunning: () => Promise.resolve(false),
  ended: () => Promise.resolve({ exitCode: 0, stderr: "" }),
  close: () => undefined,
});
