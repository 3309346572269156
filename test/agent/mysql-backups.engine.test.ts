import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { testedImages } from "../support/database-spec.ts";
import { DatabaseHost } from "../support/database-host.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";

const host = await new DatabaseHost().open();
beforeAll(() => ensureImages([testedImages.mysql]), 15 * 60_000);
afterAll(() => host.close());

/** Each kind that is run with the rights of whoever defined it, and what uses another of them. */
const nested = `
  CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20));
  INSERT INTO t VALUES (1, 'one'), (2, 'two');
  CREATE FUNCTION twice(n INT) RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t) * n;
  CREATE PROCEDURE counted(OUT n INT) SELECT COUNT(*) INTO n FROM t;
  CREATE VIEW z AS SELECT id, twice(id) AS n FROM t;
  CREATE VIEW a AS SELECT id, n FROM z WHERE n > 2;
  CREATE SQL SECURITY INVOKER VIEW m AS SELECT a.n, twice(a.id) AS o FROM a JOIN z USING (id);
  CREATE TRIGGER noted BEFORE INSERT ON t FOR EACH ROW SET NEW.word = CONCAT(NEW.word, twice(1));
  CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' DO DELETE FROM t WHERE id > 100;`;
const used =
  "SELECT * FROM m; CALL counted(@n); SELECT @n, twice(3); INSERT INTO t VALUES (7, 'x'); SELECT word FROM t WHERE id = 7; DELETE FROM t WHERE id = 7;";
const dump = [
  "mariadb-dump",
  "--routines",
  "--events",
  "--triggers",
  "--single-transaction",
  "--skip-comments",
];
/** What a dump of the owner's own defines. */
const kinds =
  /(?:FUNCTION `twice`|PROCEDURE `counted`|VIEW `[amz]`|EVENT `nightly`|(?:TRIGGER|trigger) `?noted)/gi;

describe("a MariaDB database of views on views, functions, procedures, triggers and events", () => {
  const spec = host.specOf("mysql", "nested");
  const other = host.specOf("mysql", "another");
  let backupId: string;
  let before: string;
  const ownDump = async (of = spec) =>
    [
      ...new Set((await host.mariadb(of, "", dump)).match(kinds)?.map((found) => found.toLowerCase())),
    ].toSorted();
  let whole: string[];

  it("is backed up, and the backup is proven", async () => {
    await host.does("database.provision", { database: spec });
    await host.mariadb(spec, nested);
    before = await host.mariadb(spec, used);
    whole = await ownDump();
    expect(whole.length).toBe(7);
    backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
  });

  it("is its owner's after rotations: everything is used, shown and dumped with the new password", async () => {
    await host.rotate(spec);
    await host.mariadb(
      spec,
      "CREATE FUNCTION later() RETURNS INT RETURN 1; CREATE VIEW last AS SELECT later() AS n FROM a",
    );
    await host.rotate(spec);
    expect(await host.mariadb(spec, used)).toBe(before);
    expect(await host.mariadb(spec, "SHOW CREATE FUNCTION twice")).toContain("SELECT COUNT(*)");
    expect(await host.mariadb(spec, "SHOW CREATE FUNCTION later")).toContain("RETURN 1");
    expect(await ownDump()).toEqual(whole);
    await host.mariadb(
      spec,
      "CREATE OR REPLACE FUNCTION later() RETURNS INT RETURN 2; DROP VIEW last; DROP FUNCTION later",
    );
    expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  });

  it("is what it was after a restore, with a password that is newer than the backup", async () => {
    await host.mariadb(spec, "DROP VIEW z; DROP FUNCTION twice; DROP TABLE t");
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await host.mariadb(spec, used)).toBe(before);
    expect(await ownDump()).toEqual(whole);
    expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  });

  it("is another database's after a restore there, and the backups of that are good in their turn", async () => {
    await host.does("database.provision", { database: other });
    expect(await host.restore(other, backupId, spec)).toBeNull();
    expect(await host.mariadb(other, used)).toBe(before);
    expect(await ownDump(other)).toEqual(whole);
    const again = await host.backUp(other);
    expect(await host.verify(other, again)).toBeNull();
    await host.mariadb(other, "DROP TABLE t");
    expect(await host.restore(other, again)).toBeNull();
    expect(await host.mariadb(other, used)).toBe(before);
  });
});

/** Loads the download into a database by the command of the manual. */
async function fillAsManualSays(spec: DatabaseSpec, backupId: string): Promise<void> {
  const manual = readFileSync(join(import.meta.dirname, "../../docs/manual/databases.md"), "utf8");
  const command = /^gunzip .* mariadb .*$/m.exec(manual)?.[0] ?? "";
  await host.put(spec, "/tmp/backup.sql.gz", host.server.found(backupId).data);
  const [login] = spec.logins;
  const options = `--protocol=tcp --host=127.0.0.1 --user=${login?.username} --password=${login?.password}`;
  const filled = command.replace("DATABASE", spec.databaseName).replace("mariadb ", `mariadb ${options} `);
  await host.run(spec, ["bash", "-o", "pipefail", "-ec", `cd /tmp; ${filled}`]);
}

it("the download of a MariaDB backup fills another database, as the manual says, with what others defined, who are not there", async () => {
  const spec = host.specOf("mysql", "downloaded");
  await host.does("database.provision", { database: spec });
  await host.mariadb(spec, nested);
  await host.mariadb(spec, "INSERT INTO t (id, word) VALUES (3, 'DEFINER=`a`@`b`')");
  const before = await host.mariadb(spec, used);
  const rows = await host.mariadb(spec, "SELECT * FROM t");
  await host.rotate(spec);
  const backupId = await host.backUp(spec);
  const other = await host.provision("mysql", "filled");
  await fillAsManualSays(other, backupId);
  expect(await host.mariadb(other, "SELECT * FROM t")).toBe(rows);
  expect(await host.mariadb(other, used)).toBe(before);
});

/** What the server accepts under settings that a new session does not have. */
const lenient = `
  CREATE SEQUENCE a_ids; CREATE SEQUENCE z_ids START WITH 50;
  CREATE TABLE numbered (id INT PRIMARY KEY DEFAULT NEXTVAL(z_ids), other INT DEFAULT (NEXTVAL(a_ids) * 2), word TEXT);
  INSERT INTO numbered (word) VALUES ('one'), ('two');
  CREATE TABLE checked (n INT); INSERT INTO checked VALUES (-1); SET check_constraint_checks = 0;
  ALTER TABLE checked ADD CONSTRAINT positive CHECK (n > 0); INSERT INTO checked VALUES (-2);
  SET sql_mode = 'ALLOW_INVALID_DATES';
  CREATE TABLE dated (day DATE NOT NULL DEFAULT '2024-02-31', at DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00');
  INSERT INTO dated VALUES ('0000-00-00', '2024-02-31 10:00:00'), ('2023-02-30', '2024-00-00 00:00:00'); INSERT INTO dated () VALUES ();
  SET sql_mode = '', innodb_strict_mode = 0;
  CREATE TABLE wide (${Array.from({ length: 40 }, (_, n) => `c${n} VARCHAR(64) CHARACTER SET latin1`).join(", ")},
    ${Array.from({ length: 160 }, (_, n) => `t${n} CHAR(64) CHARACTER SET latin1`).join(", ")}) ROW_FORMAT=DYNAMIC;
  INSERT INTO wide (c0, t0) VALUES ('a', 'b');
  CREATE TABLE packed (id INT) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=16;
  CREATE TABLE odd (n TINYINT NOT NULL DEFAULT 0, kind ENUM('a', 'b') NOT NULL, half INT AS (10 / n) PERSISTENT);
  INSERT INTO odd (n, kind) VALUES (0, 'c'), (5, 'a');`;
const lenientRead = `SELECT * FROM numbered; SELECT * FROM checked; SELECT * FROM dated; SELECT c0, t0 FROM wide; SELECT * FROM odd;
  SHOW CREATE TABLE numbered; SHOW CREATE TABLE checked; SHOW CREATE TABLE dated; SHOW CREATE TABLE wide; SHOW CREATE TABLE packed; SHOW CREATE TABLE odd`;

describe("a MariaDB database of tables and rows that a strict session refuses", () => {
  const spec = host.specOf("mysql", "lenient");
  const other = host.specOf("mysql", "lenience");
  const read = async (of: typeof spec) =>
    (await host.mariadb(of, lenientRead)).replaceAll(of.databaseName, "itself");
  let backupId: string;
  let before: string;

  it("is backed up, proven and restored", async () => {
    await host.does("database.provision", { database: spec });
    await host.mariadb(spec, lenient);
    before = await read(spec);
    expect(before).toContain("2024-02-31");
    backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await read(spec)).toBe(before);
    await host.mariadb(spec, "INSERT INTO numbered (word) VALUES ('three')");
  });

  it("is restored into another database, which is backed up in its turn", async () => {
    await host.does("database.provision", { database: other });
    expect(await host.restore(other, backupId, spec)).toBeNull();
    expect(await read(other)).toBe(before);
    expect(await host.verify(other, await host.backUp(other))).toBeNull();
  });

  it("is filled by its own download, as the manual says", async () => {
    // Its defaults name the database.
    const filled = await host.provision("mysql", "lenient");
    await fillAsManualSays(filled, backupId);
    expect(await read(filled)).toBe(before);
  });
});

describe("a view that cannot be opened while a MariaDB database is backed up", () => {
  const spec = host.specOf("mysql", "unopened");
  const read = "SELECT MAX(n) > 0 FROM on_sequence; SELECT * FROM a; SELECT * FROM z";
  const asRoot = (input: string) =>
    host.run(spec, ["mariadb", "--user=root", `--password=${spec.adminPassword}`], input);

  it("is what it was after a restore if it works then, in whatever order they need each other", async () => {
    await host.does("database.provision", { database: spec });
    await host.mariadb(
      spec,
      `CREATE TABLE t (word VARCHAR(20)); INSERT INTO t VALUES ('one');
       CREATE VIEW z AS SELECT word, 'it''s\n\\ ünï' AS other FROM t; CREATE VIEW a AS SELECT * FROM z;
       CREATE SEQUENCE ids; CREATE SQL SECURITY INVOKER VIEW of_sequence AS SELECT NEXTVAL(ids) AS n;
       CREATE VIEW on_sequence AS SELECT n FROM of_sequence`,
    );
    const before = await host.mariadb(spec, read);
    // Like a write limit: those of definers without rights cannot be opened.
    const [login] = spec.logins;
    await asRoot(
      `REVOKE ALL PRIVILEGES ON \`${spec.databaseName.replaceAll("_", "\\_")}\`.* FROM '${login?.username}'@'%'`,
    );
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await host.mariadb(spec, read)).toBe(before);
    expect(await host.mariadb(spec, "SHOW CREATE VIEW a")).toContain(`DEFINER=\`${login?.username}\``);
  });

  it("is in the file and not in the way if what it refers to is missing", async () => {
    await host.mariadb(
      spec,
      `CREATE TABLE gone (id INT); CREATE VIEW lost AS SELECT id FROM gone; DROP TABLE gone;
       CREATE SEQUENCE s; CREATE VIEW of_table AS SELECT NEXTVAL(s) AS n; DROP SEQUENCE s; CREATE TABLE s (id INT);
       CREATE TABLE q (id INT); CREATE VIEW itself AS SELECT id FROM q; RENAME TABLE q TO r; RENAME TABLE itself TO q`,
    );
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(gunzipSync(host.server.found(backupId).data).toString()).toContain("VIEW `lost` AS select");
    const other = await host.provision("mysql", "opened");
    expect(await host.restore(other, backupId, spec)).toBeNull();
    expect(await host.mariadb(other, "SHOW TABLES LIKE 'lost'; SELECT * FROM a")).toContain("one");
    expect(await host.verify(other, await host.backUp(other))).toBeNull();
  });
});

describe("a MariaDB database of large rows", () => {
  const spec = host.specOf("mysql", "large");
  spec.limits.memoryMb = 512;
  const read = "SELECT id, LENGTH(raw), MD5(raw), LENGTH(text), MD5(text) FROM t ORDER BY id";

  it("is backed up, proven, restored, and filled by its own download", async () => {
    await host.does("database.provision", { database: spec });
    await host.mariadb(spec, "CREATE TABLE t (id INT PRIMARY KEY, raw LONGBLOB, text LONGTEXT)");
    const packet = Number(await host.mariadb(spec, "SELECT @@max_allowed_packet"));
    const sizes = [10 * 2 ** 20, Math.floor(15.5 * 2 ** 20), packet / 2 - 4096];
    for (const [id, size] of sizes.entries())
      await host.mariadb(spec, `INSERT INTO t VALUES (${id}, REPEAT(CHAR(1), ${size}), NULL)`);
    await host.mariadb(spec, `INSERT INTO t VALUES (9, NULL, REPEAT(CHAR(39), ${10 * 2 ** 20}))`);
    const before = await host.mariadb(spec, read);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    await host.mariadb(spec, "DROP TABLE t");
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await host.mariadb(spec, read)).toBe(before);
    await host.mariadb(spec, "DROP TABLE t");
    // From elsewhere: here it would take of the server's own memory.
    const client = host.specOf("mysql", "client");
    await host.does("database.provision", { database: client });
    await host.put(client, "/tmp/download.gz", host.server.found(backupId).data);
    const [login] = spec.logins;
    const command = `gunzip < /tmp/download.gz | mariadb --max-allowed-packet=1G --host=${spec.hostname} --user=${login?.username} --password=${login?.password} ${spec.databaseName}`;
    await host.run(client, ["sh", "-c", command]);
    expect(await host.mariadb(spec, read)).toBe(before);
  }, 300_000);
});

it("events of a MariaDB database run, and in a copy that is compared they do not", async () => {
  const spec = host.specOf("mysql", "timed");
  await host.does("database.provision", { database: spec });
  await host.mariadb(
    spec,
    "CREATE TABLE t (at TIMESTAMP); CREATE EVENT tick ON SCHEDULE EVERY 1 SECOND DO INSERT INTO t VALUES (NOW())",
  );
  const count = async () => Number(await host.mariadb(spec, "SELECT COUNT(*) FROM t"));
  await expect.poll(count).toBeGreaterThan(1);
  const backupId = await host.backUp(spec);
  expect(await host.verify(spec, backupId)).toBeNull();
  await host.rotate(spec);
  expect(await host.restore(spec, backupId)).toBeNull();
  const restored = await count();
  await expect.poll(count).toBeGreaterThan(restored);
});

it("a MariaDB backup is good after the time of its events that end, which it holds no more, also one that counts all as one", async () => {
  const spec = await host.provision("mysql", "passing");
  await host.mariadb(
    spec,
    `CREATE TABLE t (a INT); CREATE EVENT always ON SCHEDULE EVERY 1 DAY DO DELETE FROM t;
     CREATE EVENT kept ON SCHEDULE AT NOW() + INTERVAL 30 SECOND ON COMPLETION PRESERVE DO DO 1;
     CREATE EVENT once ON SCHEDULE AT NOW() + INTERVAL 30 SECOND DO INSERT INTO t VALUES (1);
     CREATE EVENT while_on ON SCHEDULE EVERY 1 SECOND ENDS NOW() + INTERVAL 30 SECOND DO DO 1;
     CREATE EVENT later ON SCHEDULE AT NOW() + INTERVAL 1 DAY DO DELETE FROM t;`,
  );
  const names = () => host.mariadb(spec, "SELECT event_name FROM information_schema.events ORDER BY 1");
  const backupId = await host.backUp(spec);
  await expect.poll(names, { timeout: 60_000 }).toBe("always\nkept\nlater");
  expect(await host.verify(spec, backupId)).toBeNull();
  const { objects } = host.server.found(backupId).manifest.fingerprint;
  expect(objects).toMatchObject({ events: "2", "events that end": "3" });
  objects["events"] = "3";
  expect(await host.verify(spec, backupId)).toContain("There are 2 events instead of 3");
  objects["events"] = "5";
  delete objects["events that end"];
  expect(await host.restore(spec, backupId)).toBeNull();
  expect(await names()).toBe("always\nkept\nlater");
});

it("a MariaDB whose clients hold all connections that they can have is backed up, and its password rotated", async () => {
  const spec = await host.provision("mysql", "taken");
  const [login] = spec.logins;
  const held = `mariadb --protocol=tcp --host=127.0.0.1 --user=${login?.username} --password=${login?.password} --execute="SELECT SLEEP(600)"`;
  const all = host.run(spec, ["bash", "-c", `for i in {1..50}; do ${held} & done; wait`]).catch(() => "cut");
  await expect
    .poll(() => host.mariadb(spec, "SELECT 1").catch(String), { timeout: 30_000 })
    .toMatch(/1226|1040/);
  expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  await host.rotate(spec);
  expect(await host.mariadb(spec, "SELECT 1")).toBe("1");
  await all;
});

it("a MariaDB backup waits for a locked table for a minute and then names it, whether it was locked before or meanwhile", async () => {
  const before = await host.provision("mysql", "before");
  await host.mariadb(
    before,
    "CREATE TABLE held (id INT); CREATE VIEW one AS SELECT * FROM held; CREATE VIEW two AS SELECT * FROM held",
  );
  const meanwhile = await host.provision("mysql", "meanwhile");
  await host.mariadb(
    meanwhile,
    "CREATE TABLE a AS SELECT seq, MD5(seq) AS word FROM seq_1_to_1000000; CREATE TABLE `he``ld` (id INT)",
  );
  const asRoot = (spec: DatabaseSpec, input: string) =>
    host.run(
      spec,
      [
        "mariadb",
        "--user=root",
        `--password=${spec.adminPassword}`,
        "--skip-column-names",
        spec.databaseName,
      ],
      input,
    );
  const failureOf = async (spec: DatabaseSpec, statements: string, sleeps: () => Promise<unknown>) => {
    const client = asRoot(spec, `${statements} SELECT SLEEP(600)`).catch(() => undefined);
    await sleeps();
    const failure = await host.backUp(spec).catch((error: Error) => error.message);
    await asRoot(
      spec,
      "SELECT CONCAT('KILL ', id, ';') INTO @ends FROM information_schema.processlist WHERE info LIKE '%SLEEP(600)'; EXECUTE IMMEDIATE @ends",
    );
    await client;
    return failure;
  };
  const sleeping = "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(600)'";
  const reads =
    "SELECT 1 FROM information_schema.processlist WHERE user = 'berth_reader' AND info LIKE '%NO_CACHE%FROM `a`'";
  expect(
    await Promise.all([
      failureOf(before, "LOCK TABLES held WRITE;", () =>
        vi.waitUntil(async () => (await asRoot(before, sleeping)) === "1", { timeout: 30_000 }),
      ),
      failureOf(
        meanwhile,
        `DELIMITER //
         BEGIN NOT ATOMIC WHILE NOT EXISTS (${reads}) DO DO SLEEP(0.01); END WHILE; END //
         DELIMITER ;
         LOCK TABLES \`he\`\`ld\` WRITE;`,
        async () => undefined,
      ),
    ]),
  ).toEqual([
    expect.stringMatching(/^The view one could not be read: .* locked for more than a minute/),
    expect.stringMatching(/^The table `he``ld` could not be read: .* locked for more than a minute/),
  ]);
}, 300_000);

const uncopyable = [
  // The dump would never end over it.
  ["the event tick,", "CREATE EVENT tick ON SCHEDULE EVERY 1 DAY DO SET @a = ';;'", "DROP EVENT tick"],
  // The server writes its name down as it is.
  [
    "the foreign key a`b of the table child,",
    "CREATE TABLE parent (id INT PRIMARY KEY); CREATE TABLE child (id INT, CONSTRAINT `a``b` FOREIGN KEY (id) REFERENCES parent (id))",
    "DROP TABLE child, parent",
  ],
  // Its stand-in while the dump is read is a view of constants, whose columns may not be named so.
  ["the view bare,", "CREATE VIEW bare AS SELECT 1 AS `\u0001`", "DROP VIEW bare"],
  [
    "the history of the table past,",
    "CREATE TABLE past (id INT, a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, b BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING",
    "DROP TABLE past",
  ],
] as const;
it("what no backup could hold is named when it is backed up", async () => {
  const spec = host.specOf("mysql", "endless");
  await host.does("database.provision", { database: spec });
  for (const [named, made, gone] of uncopyable) {
    await host.mariadb(spec, made);
    await expect(host.backUp(spec)).rejects.toThrow(named);
    await host.mariadb(spec, gone);
  }
  expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
});

describe("what an owner made in a MariaDB database", () => {
  const spec = host.specOf("mysql", "spied");
  const asRoot = (input: string) =>
    host.run(
      spec,
      ["mariadb", "--user=root", `--password=${spec.adminPassword}`, "--skip-column-names"],
      input,
    );

  it("never runs with the rights of the server's own user, also where a table turns into a view meanwhile", async () => {
    await host.does("database.provision", { database: spec });
    await host.mariadb(
      spec,
      `CREATE TABLE seen (who VARCHAR(200)) ENGINE=MyISAM;
       CREATE TABLE a AS SELECT seq, REPEAT(MD5(seq), 3) AS word FROM seq_1_to_200000;
       CREATE TABLE z (id INT);
       DELIMITER //
       CREATE FUNCTION spy() RETURNS INT SQL SECURITY INVOKER
       BEGIN INSERT INTO seen VALUES (CURRENT_USER()); RETURN 1; END //
       DELIMITER ;
       CREATE SQL SECURITY INVOKER VIEW looked AS SELECT spy() AS id;`,
    );
    const backup = host.backUp(spec).catch(() => null);
    const counting =
      "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%SUM(CAST(CONV%`a`%' AND id <> CONNECTION_ID()";
    await expect.poll(() => asRoot(counting), { interval: 10, timeout: 30_000 }).toBe("1");
    await host.mariadb(spec, "DROP TABLE z; CREATE SQL SECURITY INVOKER VIEW z AS SELECT spy() AS id");
    const made = await backup;
    if (made !== null) await host.verify(spec, made);
    expect(await host.mariadb(spec, "SELECT who FROM seen WHERE who LIKE 'root%'")).toBe("");
    // What is there by now is copied at the next time.
    const again = await host.backUp(spec);
    expect(await host.verify(spec, again)).toBeNull();
    expect(await host.restore(spec, again)).toBeNull();
    expect(await host.mariadb(spec, "SELECT who FROM seen WHERE who LIKE 'root%'")).toBe("");
  });
});
