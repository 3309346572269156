import { maxShownStatement, type DatabaseSchema } from "../../../protocol/api/insight.ts";
import {
  boundedSocket,
  megabytes,
  rounded,
  sessionOnly,
  StatementError,
  type Inspector,
  type Place,
} from "../inspect/place.ts";
import { RedisClient, RedisError, type Reply } from "./client.ts";
import { wordsOf } from "./words.ts";
import { Rows } from "../inspect/rows.ts";

const port = 6379;
const scannedKeys = 10_000;
const scannedAtOnce = 500;
/** The name of these connections at the server, but for statements of the owner's. */
const ownName = "berth";
/** All that a server keeps. */
const slowKept = "128";
const slowShown = 20;

/** Besides by that name, Berth connects from within the container, where nobody else is. */
const isOwn = ([, , , , address, name]: Reply[]): boolean =>
  textOf(name) === ownName || textOf(address).startsWith("127.0.0.1:");

/** Connects with the customer's login. */
async function connected<T>(place: Place, work: (client: RedisClient) => Promise<T>): Promise<T> {
  const { socket, taken } = boundedSocket(place.signal);
  const client = new RedisClient(socket, taken);
  socket.connect(port, place.address);
  try {
    const signedIn = await client.ask("AUTH", place.login.username, place.login.password);
    if (signedIn instanceof RedisError) throw signedIn;
    await say(client, "CLIENT", "SETNAME", ownName);
    return await work(client);
  } finally {
    socket.destroy();
  }
}

/** @throws RedisError */
async function say(client: RedisClient, ...words: string[]): Promise<Reply> {
  const reply = await client.ask(...words);
  if (reply instanceof RedisError) throw reply;
  return reply;
}

const textOf = (reply: Reply | undefined): string =>
  typeof reply === "string" ? reply : (JSON.stringify(reply) ?? "");
const shown = (reply: Reply | undefined): string => textOf(reply).slice(0, maxShownStatement);

async function info(client: RedisClient): Promise<Map<string, string>> {
  const lines = textOf(await say(client, "INFO")).split("\r\n");
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, name, value] = /^([^#:]+):(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value ?? ""]];
    }),
  );
}

/** Name, flags and categories of a command, or of its subcommand named by the second word; null if there is none. */
async function described(client: RedisClient, [name, part]: readonly string[]) {
  const [found] = (await say(client, "COMMAND", "INFO", name ?? "")) as (Reply[] | null)[];
  if (!found) return null;
  const parts = (found[9] ?? []) as Reply[][];
  const whole = parts.find(([full]) => textOf(full).toLowerCase() === `${name}|${part}`.toLowerCase());
  const entry = whole ?? found;
  const words = (list: Reply | undefined) => new Set((list as Reply[]).map(textOf));
  return { name: textOf(entry[0]).toLowerCase(), flags: words(entry[2]), categories: words(entry[6]) };
}

/** Lua scripts and functions continue after their client disconnects and block all other clients. */
const refusedAlways = ["@scripting", "@blocking", "@pubsub"];
const readingBeside = new Set(["info", "ping", "echo", "time", "slowlog|get", "slowlog|len", "acl|whoami"]);

async function demandAllowed(client: RedisClient, words: readonly string[], write: boolean): Promise<void> {
  const command = await described(client, words);
  if (!command) throw new StatementError(`Redis knows no command ${shown(words[0])}.`);
  const { name, flags, categories } = command;
  const upper = name.replace("|", " ").toUpperCase();
  if (refusedAlways.some((one) => categories.has(one)) || name === "monitor")
    throw new StatementError(
      `${upper} is not available here because it could block the database: connect to the database to run it.`,
    );
  if (name === "select" || categories.has("@transaction")) throw sessionOnly(upper);
  if (write || readingBeside.has(name)) return;
  if (!flags.has("readonly"))
    throw new StatementError(`${upper} is not a read-only command: it requires \`write\`.`);
  if (categories.has("@dangerous"))
    throw new StatementError(
      `${upper} reads everything at once and blocks the database meanwhile: use SCAN, which works incrementally.`,
    );
}

const valueOf = (reply: Reply): unknown => {
  if (reply instanceof RedisError) return `(error) ${reply.message}`;
  return Array.isArray(reply) ? reply.map(valueOf) : reply;
};

const typeOf = (reply: Reply): string => {
  if (reply === null) return "nil";
  if (Array.isArray(reply)) return "list";
  return typeof reply === "object" ? "binary" : typeof reply === "number" ? "integer" : "string";
};

async function keyspace(client: RedisClient, database: number, keys: number, room: number) {
  await say(client, "SELECT", String(database));
  const byType: Record<string, number> = {};
  let sampledKeys = 0;
  let cursor = "0";
  do {
    const [next, names] = (await say(client, "SCAN", cursor, "COUNT", String(scannedAtOnce))) as [
      string,
      (string | { base64: string })[],
    ];
    cursor = next;
    const asked = names.map((name) =>
      client.ask("TYPE", typeof name === "string" ? name : Buffer.from(name.base64, "base64")),
    );
    for (const type of await Promise.all(asked)) {
      // It has expired meanwhile.
      if (type === "none" || type instanceof RedisError) continue;
      byType[textOf(type)] = (byType[textOf(type)] ?? 0) + 1;
      sampledKeys++;
    }
  } while (cursor !== "0" && sampledKeys < room);
  return { database, keys, byType, sampledKeys };
}

export const redis: Inspector = {
  insight: (place) =>
    connected(place, async (client) => {
      const facts = await info(client);
      const number = (name: string) => Number(facts.get(name) ?? 0);
      const slow = (await say(client, "SLOWLOG", "GET", slowKept)) as Reply[][];
      const clients = textOf(await say(client, "CLIENT", "LIST")).split("\n");
      const own = textOf(await say(client, "CLIENT", "ID"));
      const looked = number("keyspace_hits") + number("keyspace_misses");
      const active = clients.flatMap((line) => {
        const field = (name: string) => new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1] ?? "";
        // Clients that are blocked or whose reply is being sent; the last commands of all others have ended.
        const isBusy = /[bx]/.test(field("flags")) || Number(field("omem")) > 0;
        if (!isBusy || field("id") === own) return [];
        return [
          {
            id: field("id"),
            statement: field("cmd"),
            durationMs: Number(field("idle")) * 1000,
            state: /b/.test(field("flags")) ? "blocked" : "busy",
            waitsFor: /b/.test(field("flags")) ? field("cmd") : null,
            blockedBy: [],
          },
        ];
      });
      return {
        sizeMb: megabytes(number("used_memory")),
        connections: { used: number("connected_clients"), max: number("maxclients") },
        cacheHitRatio: looked === 0 ? null : number("keyspace_hits") / looked,
        uptimeSeconds: number("uptime_in_seconds"),
        activeQueries: active.slice(0, 50),
        slowQueries: slow
          .filter((entry) => !isOwn(entry))
          .slice(0, slowShown)
          .map(([, , microseconds, words]) => {
            const ms = rounded(Number(microseconds) / 1000);
            const statement = shown((words as Reply[]).map(shown).join(" "));
            return { statement, calls: 1, totalMs: ms, meanMs: ms, maxMs: ms };
          }),
      };
    }),

  schema: (place) =>
    connected(place, async (client) => {
      const keyspaces: DatabaseSchema["keyspaces"] = [];
      let room = scannedKeys;
      for (const [name, value] of await info(client)) {
        const database = /^db(\d+)$/.exec(name)?.[1];
        if (database === undefined) continue;
        const keys = Number(/^keys=(\d+)/.exec(value)?.[1]);
        const found =
          room > 0
            ? await keyspace(client, Number(database), keys, room)
            : { database: Number(database), keys, byType: {}, sampledKeys: 0 };
        room -= found.sampledKeys;
        keyspaces.push(found);
      }
      const truncated = keyspaces.some(({ keys, sampledKeys }) => sampledKeys < keys);
      return { tables: [], keyspaces, truncated };
    }),

  query: (place, { statement, write, dryRun, limit }) =>
    connected(place, async (client) => {
      if (dryRun) throw new StatementError("Redis cannot roll back a command, so there is no dry run of it.");
      const words = wordsOf(statement);
      if (!words || words.length === 0)
        throw new StatementError("A quote in the command is not closed, or text follows it without a space.");
      if (statement.includes("\n") && !/["']/.test(statement))
        throw new StatementError("This is more than one command: give one, on one line.");
      await demandAllowed(
        client,
        words.map((word) => word.toString()),
        write,
      );
      await say(client, "CLIENT", "SETNAME", "");
      const reply = await client.ask(...words);
      if (reply instanceof RedisError) throw new StatementError(`Redis refused it: ${reply.message}.`);
      const rows = new Rows(limit, write);
      for (const item of Array.isArray(reply) ? reply : [reply]) if (!rows.add([valueOf(item)])) break;
      return rows.answer([{ name: "reply", type: typeOf(reply) }], null);
    }),

  endSession: (place, session) =>
    connected(place, async (client) => {
      // Only the owner's own: a backup or a replica is not.
      const clients = textOf(await say(client, "CLIENT", "LIST", "ID", session));
      const user = /(?:^| )user=(\S*)/m.exec(clients)?.[1];
      if (user === undefined) return false;
      if (user !== place.login.username)
        throw new StatementError(`The session ${session} belongs to another user of the server (${user}).`);
      const killed = await say(client, "CLIENT", "KILL", "ID", session, "SKIPME", "yes");
      return killed === 1;
    }),
};
