import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { EmbeddedDatabase, embeddedD1 } from "../../worker/embedded/database.ts";
import { bindings } from "./service.ts";

type Query = { sql: string; params: never[] };

/** The database of `npm start` in the storage of an object of its own, and how often it was asked. */
async function database<T>(
  name: string,
  use: (db: D1Database, asked: () => number) => Promise<T>,
): Promise<T> {
  const object = bindings.CONVERSATION.get(bindings.CONVERSATION.idFromName(name));
  return runInDurableObject(object, async (_object, state) => {
    const kept = new EmbeddedDatabase(state, env);
    let asked = 0;
    const query = async (queries: Query[]) => {
      asked++;
      return structuredClone(kept.query(queries));
    };
    const db = embeddedD1(() => ({ idFromName: () => "", get: () => ({ query }) }) as never);
    await db.prepare("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)").run();
    await db.prepare("INSERT INTO t VALUES (1, 'one'), (2, 'two')").run();
    asked = 0;
    return use(db, () => asked);
  });
}
const wordOf = async (db: D1Database, id: number) =>
  (await db.prepare("SELECT word FROM t WHERE id = ?").bind(id).first<{ word: string }>())?.word;

it("a read that was answered is not asked again, until something changes", async () => {
  await database("memo-1", async (db, asked) => {
    expect([await wordOf(db, 1), await wordOf(db, 2), await wordOf(db, 1), await wordOf(db, 1)]).toEqual([
      "one",
      "two",
      "one",
      "one",
    ]);
    expect(asked()).toBe(2);
    await db.prepare("UPDATE t SET word = 'uno' WHERE id = 1").run();
    expect([await wordOf(db, 1), await wordOf(db, 2)]).toEqual(["uno", "two"]);
    expect(asked()).toBe(5);
  });
});

it.each([
  ["INSERT INTO t VALUES (3, 'three')", "one,two,three"],
  ["DELETE FROM t WHERE id = 2", "one"],
  [
    "WITH other (word) AS (VALUES ('uno')) UPDATE t SET word = (SELECT word FROM other) WHERE id = 1",
    "uno,two",
  ],
  ["REPLACE INTO t VALUES (1, 'uno')", "uno,two"],
  ["ALTER TABLE t RENAME COLUMN word TO name", null],
])("nothing remembered outlives %s", async (sql, after) => {
  await database(`memo ${sql}`, async (db) => {
    const read = () =>
      db.prepare("SELECT group_concat(word) AS words FROM (SELECT word FROM t ORDER BY id)").first("words");
    expect(await read()).toBe("one,two");
    await db.prepare(sql).run();
    if (after === null) await expect(read()).rejects.toThrow("no such column");
    else expect(await read()).toBe(after);
  });
});

it("a change that is refused, or changes nothing, leaves what is remembered true", async () => {
  await database("memo-2", async (db, asked) => {
    const one = db.prepare("UPDATE t SET word = 'uno' WHERE id = 1");
    await wordOf(db, 1);
    await expect(db.batch([one, db.prepare("INSERT INTO t VALUES (2, 'again')")])).rejects.toThrow("UNIQUE");
    expect(await wordOf(db, 1)).toBe("one");
    const before = asked();
    await db.prepare("UPDATE t SET word = 'x' WHERE id = 9").run();
    expect([await wordOf(db, 1), asked()]).toEqual(["one", before + 1]);
  });
});

it("an answer that a change overtakes on its way is not remembered", async () => {
  await database("memo-3", async (db) => {
    // Both are asked before either is answered; the object takes them in order.
    const [before] = await Promise.all([wordOf(db, 1), db.prepare("UPDATE t SET word = 'uno'").run()]);
    expect([before, await wordOf(db, 1)]).toEqual(["one", "uno"]);
  });
});

it("reads together are remembered each; beside a change none is", async () => {
  await database("memo-4", async (db, asked) => {
    const reads = [1, 2].map((id) => db.prepare("SELECT word FROM t WHERE id = ?").bind(id));
    await db.batch(reads);
    expect([await wordOf(db, 1), asked()]).toEqual(["one", 1]);
    const change = db.prepare("UPDATE t SET word = 'uno' WHERE id = 1");
    const [, after] = await db.batch<{ word: string }>([change, ...reads]);
    expect(after?.results).toEqual([{ word: "uno" }]);
    expect(await wordOf(db, 1)).toBe("uno");
  });
});

it("what is read in random order is asked for each time", async () => {
  await database("memo-random", async (db, asked) => {
    const read = () => db.prepare("SELECT id FROM t ORDER BY random()").all();
    await read();
    await read();
    expect(asked()).toBe(2);
  });
});

it("bytes, and what is larger than 256 kB, are asked for each time", async () => {
  await database("memo-5", async (db, asked) => {
    for (const value of ["x'00ff'", "hex(zeroblob(100000))"]) {
      const before = asked();
      for (let time = 0; time < 2; time++) await db.prepare(`SELECT ${value} AS value`).first();
      expect(asked() - before).toBe(2);
    }
  });
});

it("what is handed out can be changed without a trace", async () => {
  await database("memo-6", async (db) => {
    const read = () => db.prepare("SELECT id, word FROM t ORDER BY id").all<{ word: string }>();
    const { results } = await read();
    if (results[0]) results[0].word = "changed";
    results.pop();
    expect((await read()).results).toEqual([
      { id: 1, word: "one" },
      { id: 2, word: "two" },
    ]);
  });
});
