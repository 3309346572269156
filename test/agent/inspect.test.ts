import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { networkName } from "../../agent/docker/specs.ts";
import { fitting, longest, openInspection } from "../../agent/databases/inspect/index.ts";
import { boundedSocket } from "../../agent/databases/inspect/place.ts";
import { RedisClient, RedisError } from "../../agent/databases/redis/client.ts";
import { wordsOf } from "../../agent/databases/redis/words.ts";
import { exactNumber, Rows } from "../../agent/databases/inspect/rows.ts";
import type { ServerQuestion } from "../../protocol/agent/running.ts";
import { maxActiveQueries, maxResultBytes } from "../../protocol/api/insight.ts";

describe("the words of a command", () => {
  const texts = (line: string) => wordsOf(line)?.map(String);

  it.each([
    ["GET a", ["GET", "a"]],
    ["  SET  \"a b\"\t'c d' ", ["SET", "a b", "c d"]],
    ['SET k "a\\n\\"\\\\\\t"', ["SET", "k", 'a\n"\\\t']],
    ["SET k 'it\\'s \\n'", ["SET", "k", "it's \\n"]],
    ['SET k ""', ["SET", "k", ""]],
    ["SET žluť 🐎", ["SET", "žluť", "🐎"]],
    ['SET k a"b', ["SET", "k", 'a"b']],
    ["", []],
  ])("of %s", (line, words) => expect(texts(line)).toEqual(words));

  it("may hold any bytes", () => {
    expect(wordsOf('"a\\x00\\xFFž"')).toEqual([Buffer.from([0x61, 0, 0xff, 0xc5, 0xbe])]);
  });

  it.each(['GET "a', "GET 'a", 'GET "a"b', "GET 'a'b", 'GET "a\\'])(
    "are none where a quote does not end: %s",
    (line) => expect(wordsOf(line)).toBeNull(),
  );
});

describe("questions", () => {
  const question = (database: string): ServerQuestion => ({
    kind: "insight",
    databaseId: `db_${database}`,
    type: "redis",
    databaseName: "0",
    login: { username: "u", password: "p" },
  });
  const inspect = openInspection({
    agentId: "agent",
    useOnce: () => true,
    engine: {
      inspectContainer: (name: string) => {
        const account = name.includes("other") ? "acc_other" : "acc_many";
        const labels = { "berth.agent": "agent", "berth.account": account };
        return Promise.resolve({
          running: true,
          labels,
          addresses: { [networkName(account)]: "127.7.7.7" },
        } as never);
      },
      execute: () => Promise.reject(new Error("Redis is asked over its socket")),
    },
  });
  /** Servers that take a connection and say nothing, until the end. */
  async function silentServers() {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(6379, "127.7.7.7", resolve));
    return {
      end: () => {
        for (const socket of sockets) socket.destroy();
        server.close();
      },
    };
  }

  it("of one account are eight at a time on a host, of whichever of its databases; another's have room", async () => {
    const servers = await silentServers();
    const end = new AbortController();
    const refusedAtOnce: string[] = [];
    const ask = async (database: string) => {
      const answer = await inspect(question(database), end.signal);
      if (!end.signal.aborted && answer.kind === "refused") refusedAtOnce.push(answer.error);
    };
    const asked = Array.from({ length: 12 }, (_, index) => ask(`many${index % 4}`));
    asked.push(ask("other"));
    await expect.poll(() => refusedAtOnce.length).toBe(4);
    expect(new Set(refusedAtOnce)).toEqual(
      new Set(["Too many requests to your databases are open: wait for a response first."]),
    );
    end.abort();
    await Promise.all(asked);
    servers.end();
  });

  it.each([
    [null, /Try again/],
    [{ nonce: "n", expiresAt: "2026-01-01T00:00:00.000Z" }, /may have taken effect: check/],
  ])("whose connection is lost are told to be repeated, but not what writes: %j", async (write, says) => {
    const server = createServer((socket) => socket.once("data", () => socket.destroy()));
    await new Promise<void>((resolve) => server.listen(6379, "127.7.7.7", resolve));
    const statement = { kind: "query", statement: "INCR a", write, dryRun: false, limit: 1 } as const;
    const asked = { ...question("many"), ...statement, timeoutMs: 5000 };
    expect(await inspect(asked, new AbortController().signal)).toMatchObject({
      kind: "refused",
      error: expect.stringMatching(says),
    });
    server.close();
  });

  it("of a PostgreSQL server that starts or stops, as in a restore, are told that, and that nothing ran", async () => {
    const fields = Buffer.from("SFATAL\0C57P03\0Mthe database system is shutting down\0\0");
    const length = Buffer.alloc(4);
    length.writeInt32BE(fields.length + 4);
    const server = createServer((socket) =>
      socket.once("data", () => socket.end(Buffer.concat([Buffer.from("E"), length, fields]))),
    );
    await new Promise<void>((resolve) => server.listen(5432, "127.7.7.7", resolve));
    const write = { nonce: "n", expiresAt: "2026-01-01T00:00:00.000Z" };
    const statement = { kind: "query", statement: "DELETE FROM t", write, dryRun: false, limit: 1 } as const;
    const asked = { ...question("many"), ...statement, type: "postgresql", timeoutMs: 5000 } as const;
    expect(await inspect(asked, new AbortController().signal)).toEqual({
      kind: "refused",
      error: "The database's server is starting or stopping: try again in a minute.",
    });
    server.close();
  });
});

describe("the tables of a database", () => {
  const table = (name: string, columns: number, length: number) => ({
    schema: "public",
    name,
    kind: "table" as const,
    rowsEstimate: null,
    sizeMb: null,
    columns: Array.from({ length: columns }, (_, n) => ({
      name: `c${n}`,
      type: "text",
      nullable: true,
      default: "x".repeat(length),
    })),
    primaryKey: [],
    foreignKeys: [],
    indexes: [],
  });
  const shown = (...tables: ReturnType<typeof table>[]) => {
    const { truncated, ...schema } = fitting({ tables, keyspaces: [], truncated: false });
    expect(Buffer.byteLength(JSON.stringify({ ...schema, truncated }))).toBeLessThanOrEqual(maxResultBytes);
    return [schema.tables.map(({ name }) => name).join(), truncated];
  };

  it("are all shown where they fit, and else those that do, also beside one that is too large alone", () => {
    expect(shown(table("a", 3, 10), table("b", 3, 10))).toEqual(["a,b", false]);
    expect(shown(table("large", 1600, 700), table("b", 3, 10))).toEqual(["large,b", true]);
    expect(shown(table("large", 1600, 700))).toEqual(["large", true]);
    const [half, other] = [table("half", 800, 500), table("other", 800, 500)];
    expect(shown(half, other, table("last", 3, 10))).toEqual(["half,other,last", false]);
    expect(shown(half, other, table("more", 800, 500), table("last", 3, 10))).toEqual([
      "half,other,last",
      true,
    ]);
  });
});

it("of more statements than are told the longest are", () => {
  const active = Array.from({ length: 2 * maxActiveQueries }, (_, durationMs) => ({ durationMs }));
  const told = longest(active);
  expect([told.length, told[0], told.at(-1)]).toEqual([50, { durationMs: 99 }, { durationMs: 50 }]);
});

describe("rows", () => {
  it("end at their number, and are as many as there are", () => {
    const rows = new Rows(2);
    expect([rows.add([1]), rows.add([2]), rows.truncated, rows.add([3]), rows.truncated]).toEqual([
      true,
      true,
      false,
      false,
      true,
    ]);
  });

  it("end before they are too large, and one alone that is too large is refused", () => {
    const rows = new Rows(1000);
    while (rows.add(["é".repeat(1000)]));
    expect(Buffer.byteLength(JSON.stringify(rows.rows))).toBeLessThanOrEqual(maxResultBytes);
    expect(Buffer.byteLength(JSON.stringify(rows.rows))).toBeGreaterThan(maxResultBytes - 3000);
    // What JSON escapes counts as it is sent.
    expect(() => new Rows(1).add(["\u0001".repeat(maxResultBytes / 6)])).toThrow("larger than 960 KiB");
  });

  it("of a statement that wrote are left out where they are too large, and so are their columns", () => {
    const rows = new Rows(10, true);
    expect([rows.add([1]), rows.add(["w".repeat(maxResultBytes)]), rows.add([2])]).toEqual([
      true,
      false,
      false,
    ]);
    expect(rows.answer([], 3)).toEqual({ columns: [], rows: [[1]], truncated: true, affectedRows: 3 });
    const columns = [{ name: "c".repeat(maxResultBytes), type: "text" }];
    const none = { columns: [], rows: [], truncated: true, affectedRows: 3 };
    expect(rows.answer(columns, 3)).toEqual(none);
    const first = new Rows(10, true);
    expect([first.add(["w".repeat(maxResultBytes)]), first.answer([], 3)]).toEqual([false, none]);
  });

  it("leave room for the names of their columns, however many and long those are", () => {
    const columns = Array.from({ length: 1600 }, (_, index) => ({
      name: `${index}`.padEnd(63, "\u0001"),
      type: "text",
    }));
    const rows = new Rows(1000);
    while (rows.add(columns.map(() => null)));
    const answer = rows.answer(columns, null);
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThanOrEqual(maxResultBytes + 200);
    expect([answer.rows.length > 10, answer.truncated]).toEqual([true, true]);
    const longer = columns.map((column) => ({ ...column, name: column.name.repeat(2) }));
    expect(() => new Rows(1000).answer(longer, null)).toThrow("larger than 960 KiB");
  });

  it("hold numbers only where JSON does", () => {
    expect(
      ["9007199254740991", "9007199254740993", "-1.5", "NaN", "Infinity", "1e308"].map(exactNumber),
    ).toEqual([Number.MAX_SAFE_INTEGER, "9007199254740993", -1.5, "NaN", "Infinity", "1e308"]);
  });
});

describe("a Redis server", () => {
  let server: Server | undefined;
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server?.close();
  });

  /** A client of a server that answers everything with this, in pieces of so many bytes. */
  async function clientOf(answer: Buffer | string, pieces = 1_000_000): Promise<RedisClient> {
    const bytes = Buffer.from(answer);
    const listening = createServer((socket) => {
      sockets.push(socket.setNoDelay(true));
      socket
        .on("error", () => undefined)
        .once("data", () => {
          const send = (at: number): void => {
            if (at < bytes.length)
              socket.write(bytes.subarray(at, at + pieces), () => setImmediate(send, at + pieces));
          };
          send(0);
        });
    });
    server = listening;
    await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
    const { socket, taken } = boundedSocket(new AbortController().signal);
    sockets.push(socket);
    socket.connect((listening.address() as AddressInfo).port, "127.0.0.1");
    return new RedisClient(socket, taken);
  }

  it.each([1, 2, 3, 1000])("is understood however its answer is cut: %i bytes", async (pieces) => {
    const client = await clientOf(
      "*5\r\n$3\r\na\r\n\r\n$-1\r\n:9007199254740993\r\n*2\r\n+OK\r\n*0\r\n$2\r\né\r\n",
      pieces,
    );
    expect(await client.ask("FIRST")).toEqual(["a\r\n", null, "9007199254740993", ["OK", []], "é"]);
  });

  it("says an error as one", async () => {
    const client = await clientOf("-ERR no\r\n");
    expect(await client.ask("X")).toEqual(new RedisError("ERR no"));
  });

  it.each([
    ["nested without an end", "*1\r\n".repeat(100_000)],
    ["that speaks something else", "HTTP/1.1 400\r\n\r\n"],
    ["that never ends a value", Buffer.concat([Buffer.from("$999999999\r\n"), Buffer.alloc(30_000_000)])],
    ["that never ends a list", Buffer.from(`*999999999\r\n${":1\r\n".repeat(6_000_000)}`)],
  ])("%s ends the connection, not the agent", async (_, answer) => {
    const client = await clientOf(answer);
    await expect(client.ask("X")).rejects.toThrow();
    await expect(client.ask("Y")).rejects.toThrow();
  });
});
