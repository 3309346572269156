import fc from "fast-check";

/**
 * Generated contents of Redis, and a reader that shares nothing with the product: it uses Redis's own client and
 * output.
 */

/** Quotes any bytes as an argument of redis-cli. */
const argument = (bytes: Uint8Array): string =>
  `"${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}"`;
const words = [
  "",
  " ",
  "key",
  "a b",
  "\n",
  "\r\n",
  "'",
  '"',
  "\\",
  "*",
  "é名\u{1f40e}",
  "x".repeat(300),
  "12",
  "-1.50",
];
const bytes = fc.oneof(
  fc.constantFrom(...words).map((word) => Buffer.from(word)),
  fc.uint8Array({ maxLength: 24 }),
);
const value = fc.array(bytes, { minLength: 1, maxLength: 12 });
const kinds = [
  "string",
  "list",
  "set",
  "hash",
  "sorted set",
  "stream",
  "bitmap",
  "hyperloglog",
  "places",
] as const;

export const content = fc.record({
  keys: fc.array(
    fc.record({
      database: fc.constantFrom(0, 0, 1, 15),
      key: bytes,
      kind: fc.constantFrom(...kinds),
      value,
      many: fc.boolean(),
      expires: fc.constantFrom("never", "never", "later", "soon"),
    }),
    { maxLength: 40 },
  ),
  hasFunctions: fc.boolean(),
  big: fc.boolean(),
});
type Content = typeof content extends fc.Arbitrary<infer T> ? T : never;
type Key = Content["keys"][number];

function commandsOf({ key, kind, value: parts, many }: Key): string[] {
  const at = argument(key);
  const all = parts.map(argument);
  const pairs = all.map((one, n) => `${one} ${all[all.length - 1 - n]}`).join(" ");
  const more = (call: string) => (many ? [`EVAL "for i=1,1500 do ${call} end" 1 ${at}`] : []);
  switch (kind) {
    case "string":
      return [`SET ${at} ${all[0]}`, ...(many ? [`APPEND ${at} ${all.at(-1)}`] : [])];
    case "list":
      return [`RPUSH ${at} ${all.join(" ")}`, ...more("redis.call('LPUSH', KEYS[1], i)")];
    case "set":
      return [`SADD ${at} ${all.join(" ")}`, ...more("redis.call('SADD', KEYS[1], i)")];
    case "hash":
      return [`HSET ${at} ${pairs}`, ...more("redis.call('HSET', KEYS[1], i, i)")];
    case "sorted set":
      return [
        `ZADD ${at} ${all.map((one, n) => `${n === 0 ? "-inf" : n / 7} ${one}`).join(" ")}`,
        ...more("redis.call('ZADD', KEYS[1], i, i)"),
      ];
    case "stream":
      return [
        ...parts.map((_, n) => `XADD ${at} ${n + 1}-7 ${all[n]} ${all[0]}`),
        ...more("redis.call('XADD', KEYS[1], (i + 100) .. '-1', 'field', i)"),
        `XGROUP CREATE ${at} ${all[0]} 0`,
        `XGROUP CREATE ${at} "other group" $`,
        `XREADGROUP GROUP ${all[0]} ${all.at(-1)} COUNT 3 STREAMS ${at} >`,
        `XGROUP CREATECONSUMER ${at} ${all[0]} idle`,
        `XACK ${at} ${all[0]} 1-7`,
        `XDEL ${at} 2-7`,
      ];
    case "bitmap":
      return [`SETBIT ${at} ${many ? 80_000 : 9} 1`];
    case "hyperloglog":
      return [`PFADD ${at} ${all.join(" ")}`, ...more("redis.call('PFADD', KEYS[1], i)")];
    case "places":
      return [`GEOADD ${at} 13.4 52.5 ${all[0]} -0.1 51.5 other`];
  }
}

export function statementsOf({ keys, hasFunctions, big }: Content): string {
  const made: string[] = [];
  for (const one of keys) {
    made.push(`SELECT ${one.database}`, `DEL ${argument(one.key)}`, ...commandsOf(one));
    if (one.expires === "later") made.push(`PEXPIRE ${argument(one.key)} 86400123`);
    if (one.expires === "soon") made.push(`PEXPIRE ${argument(one.key)} 2000`);
  }
  if (hasFunctions)
    made.push(
      `FUNCTION LOAD "#!lua name=mine\\nredis.register_function{function_name='one', callback=function() return 1 end, flags={'no-writes'}}"`,
    );
  if (big)
    made.push(
      "SELECT 3",
      `EVAL "redis.call('SET', KEYS[1], string.rep('ab', 5000000)) for i=1,20000 do redis.call('SET', 'n' .. i, i) end" 1 large`,
    );
  return made.join("\n");
}

const readers: Record<string, [command: (key: string) => string, isSorted: boolean]> = {
  string: [(key) => `GET ${key}`, false],
  list: [(key) => `LRANGE ${key} 0 -1`, false],
  set: [(key) => `SMEMBERS ${key}`, true],
  hash: [(key) => `HGETALL ${key}`, true],
  zset: [(key) => `ZRANGE ${key} 0 -1 WITHSCORES`, false],
  stream: [(key) => `XINFO STREAM ${key} FULL COUNT 0`, false],
};
/** A key with less than this to live is about to expire. */
const soonMs = 60_000;
const unnumbered = (line: string) => line.replace(/^\s*(?:\d+\) )+/, "");

/** One line for each key in redis-cli's format for people, in which every byte is distinguishable. */
export async function contentsOf(ask: (input: string) => Promise<string>): Promise<string[]> {
  const found = [await ask("FUNCTION LIST WITHCODE")];
  for (let database = 0; database < 16; database++) {
    const inDatabase = async (command: string) =>
      (await ask(`SELECT ${database}\n${command}`)).split("\n").slice(1).join("\n");
    const listed = (await inDatabase("KEYS *")).split("\n").map(unnumbered);
    const keys = listed.filter((key) => key.startsWith('"'));
    if (keys.length > 1000) {
      const values = `EVAL "local s='' local k=redis.call('KEYS','*') table.sort(k) for _,one in ipairs(k) do s=redis.sha1hex(s..one..redis.call('GET',one)) end return s" 0`;
      found.push(`${database} ${keys.length} ${await inDatabase(values)}`);
      continue;
    }
    for (const key of keys.toSorted()) {
      const [type = "", ends = ""] = (await inDatabase(`TYPE ${key}\nPEXPIRETIME ${key}`))
        .split("\n")
        .map((line) => line.replace("(integer) ", ""));
      if (ends !== "-1" && Number(ends) < Date.now() + soonMs) continue;
      const [reader, isSorted] = readers[type] ?? [() => "PING", false];
      let lines = (await inDatabase(reader(key))).split("\n");
      if (type === "hash")
        lines = lines.map((line, n) =>
          n % 2 === 0 ? `${unnumbered(line)}=${unnumbered(lines[n + 1] ?? "")}` : "",
        );
      if (type === "stream") lines.push(await inDatabase(`XRANGE ${key} - +`));
      if (isSorted) lines = lines.map(unnumbered).toSorted();
      found.push(`${database} ${key} ${type} ${ends} ${lines.join("\n")}`);
    }
  }
  return found;
}
