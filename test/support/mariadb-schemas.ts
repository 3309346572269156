import fc from "fast-check";

/** Generated MariaDB databases, and readers of a database that share nothing with the product. */

export const quoted = (name: string): string => `\`${name.replaceAll("`", "``")}\``;
const text = (value: string): string => `'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

const awkward = [
  "t c n x d select table user order group key index primary_key null true default rank row_number window offset",
  "count sum concat md5 json_array UPPER a.b ? $1 :name %I % _ a;b ;; // -- # /* */ a*/b a/*!50001b */;; @a @@b",
  "a`b `` it's \"q\" a\\b \\ \\' DEFINER=`x` \u017elu\u0165 \u540d\u524d \u0434 stra\u00dfe 1 0x1 1e5",
]
  .flatMap((some) => some.split(" "))
  .concat("a b", " a", "line\nbreak", "tab\there", "\nDELIMITER x", "x".repeat(64), "é".repeat(40));
/** Whether the server accepts the name. */
const fits = (name: string) => /^[^\0]{0,63}[^\0\s]$/.test(name);
/** MariaDB treats names that are equal after this folding as the same. */
const folded = (name: string) =>
  name.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replaceAll("ß", "s");
const letters = "abcXYZ019_ -'\"`\\;/*#$%&()<>,.:@!?~{}[]|^+=éžßñЖщ名前አ\t\n".split("");
const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...awkward.filter(fits)) },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...letters), maxLength: 24 }).filter(fits) },
);
const names = (count: number) =>
  fc.uniqueArray(name, { minLength: count, maxLength: count, selector: folded });

/** A type, and a value of it that depends on `g`. */
const types: [type: string, value: string][] = [
  ["INT", "g"],
  ["TINYINT", "g % 100"],
  ["BIGINT UNSIGNED", "g * 400000000000000000"],
  ["DECIMAL(65, 30)", "g / 7"],
  ["DOUBLE", "SQRT(g) * 1e-200"],
  // mariadb-dump writes only six significant digits.
  ["FLOAT", "g / 4"],
  ["BIT(11) DEFAULT b'101'", "g"],
  ["BOOLEAN", "g % 2"],
  ["CHAR(9)", "g"],
  ["VARCHAR(40)", "CONCAT('é\\t\\\\N''', REPEAT('\\n', g % 3), g)"],
  ["VARCHAR(40) CHARACTER SET latin1", "CONCAT('é', g)"],
  ["VARCHAR(40) CHARACTER SET utf16", "CONCAT('\u{1f40e}', g)"],
  ["TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "CONCAT('\u{1f40e}', MD5(g))"],
  ["BINARY(7)", "UNHEX(LEFT(MD5(g), 8))"],
  ["VARBINARY(60)", "UNHEX(MD5(g))"],
  ["BLOB", "CONCAT(CHAR(0), CHAR(26), UNHEX(MD5(g)))"],
  ["TINYTEXT", "IF(g = 1, '', 'NULL')"],
  ["JSON", "JSON_OBJECT('a', g, 'b', '\"')"],
  ["DATE", "'2026-01-01' + INTERVAL g DAY"],
  ["DATE NOT NULL DEFAULT '0000-00-00'", "'0000-00-00'"],
  ["DATETIME", "IF(g % 2, '0000-00-00 00:00:00', '2026-02-00 00:00:00')"],
  ["TIME(6)", "SEC_TO_TIME(-g * 90000.5)"],
  ["DATETIME(6)", "TIMESTAMP'0044-03-15 00:00:00.000001' + INTERVAL g HOUR"],
  [
    "TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
    "FROM_UNIXTIME(g * 1000000.5)",
  ],
  ["YEAR", "2000 + g"],
  ["ENUM('a', 'it''s', '', '名')", "1 + g % 4"],
  ["SET('a', 'b', 'ç')", "g % 8"],
  ["INET6", "CONCAT('2001:db8::', g)"],
  ["UUID", "CONCAT(LEFT(MD5(g), 8), '-2222-1333-8444-555555555555')"],
  ["POINT", "POINT(g, -g)"],
  ["GEOMETRY", "ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))')"],
  ["INT INVISIBLE DEFAULT 5", "g"],
  ["VARCHAR(9) DEFAULT (CONCAT('a', 1))", "g"],
  ["LONGTEXT COMPRESSED", "REPEAT(MD5(g), 9)"],
];

const column = fc.record({ name, kind: fc.nat(types.length - 1), nullable: fc.boolean() });
const table = fc.record({
  columns: fc.uniqueArray(column, { minLength: 1, maxLength: 9, selector: (one) => folded(one.name) }),
  rows: fc.nat(30),
  engine: fc.constantFrom(
    "InnoDB",
    "InnoDB",
    "MyISAM",
    "Aria",
    "Aria TRANSACTIONAL=0",
    "InnoDB ROW_FORMAT=COMPRESSED",
  ),
  key: fc.boolean(),
  generated: fc.boolean(),
  checked: fc.boolean(),
  indexed: fc.boolean(),
  triggered: fc.boolean(),
  commented: fc.boolean(),
  versioned: fc.boolean(),
});
/** Text with delimiters and escapes. */
const odd = text(`it's \\ "; -- # /* */ \`\n`);

export const schema = fc.record({
  relations: names(38),
  tables: fc.array(table, { minLength: 5, maxLength: 5 }),
  big: fc.boolean(),
  collation: fc.constantFrom("utf8mb4_unicode_ci", "latin1_swedish_ci", "utf8mb4_bin"),
  mode: fc.constantFrom("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT,NO_ZERO_DATE", ""),
});
type Table = typeof table extends fc.Arbitrary<infer T> ? T : never;
type Schema = typeof schema extends fc.Arbitrary<infer T> ? T : never;

/** The owner's statements that create the schema in an empty database of this name. */
export function statementsOf({ relations, tables, big, collation, mode }: Schema, database: string): string {
  const own = quoted(database);
  let count = 0;
  const fresh = (): string => quoted(relations[count++] ?? `more${count}`);
  const [twice, loud, counted, down, total] = [fresh(), fresh(), fresh(), fresh(), fresh()];
  const made: string[] = [
    `CREATE FUNCTION ${twice}(n INT) RETURNS INT DETERMINISTIC COMMENT 'it''s' BEGIN /* ;; it's */ -- and ;; it's "this
      DECLARE ${quoted("a b")} INT DEFAULT n; # 'so
      RETURN ${quoted("a b")} * 2; END`,
    // The database's own character set differs from that of earlier objects.
    `ALTER DATABASE ${quoted(database)} COLLATE ${collation}`,
    `SET sql_mode = '${mode}'`,
    `CREATE FUNCTION ${loud}(word TEXT) RETURNS TEXT DETERMINISTIC SQL SECURITY INVOKER RETURN UPPER(CONCAT(word, 'a\\\\b'''))`,
    "SET sql_mode = ''",
    `CREATE PROCEDURE ${counted}(IN ${quoted("in")} INT, OUT n INT) BEGIN SELECT COUNT(*) INTO n FROM information_schema.tables; END`,
    `CREATE AGGREGATE FUNCTION ${total}(x INT) RETURNS INT BEGIN DECLARE s INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN s; LOOP FETCH GROUP NEXT ROW; SET s = s + x; END LOOP; END`,
    `CREATE SEQUENCE ${down} START WITH 7 INCREMENT BY -3 MINVALUE -9000000000 MAXVALUE 100 NOCACHE`,
    `SELECT NEXTVAL(${down}), NEXTVAL(${down})`,
    `CREATE SEQUENCE ${fresh()} CACHE 50 CYCLE MAXVALUE 900`,
  ];
  function fill({ columns, rows, engine, ...flags }: Table): void {
    const [at, view, over, after] = [fresh(), fresh(), fresh(), fresh()];
    const free = (wanted: string) =>
      quoted(columns.some((one) => folded(one.name) === wanted) ? `${wanted} more` : wanted);
    const [key, double] = [free("id"), free("twice")];
    const given = columns.map(({ name: one, kind, nullable }) => {
      const [type, value] = types[kind] ?? types[0]!;
      return {
        column: quoted(one),
        type,
        value: nullable && !type.includes("NOT NULL") ? `IF(g % 4 = 0, NULL, ${value})` : value,
      };
    });
    const first = given[0]?.column ?? "";
    const lines = given.map(({ column: one, type }) => `${one} ${type}`);
    if (flags.key) lines.push(`${key} BIGINT AUTO_INCREMENT PRIMARY KEY`);
    if (flags.generated)
      lines.push(`${double} VARCHAR(9) AS (CONCAT('a', 1)) ${flags.key ? "PERSISTENT" : "VIRTUAL"}`);
    if (flags.checked) lines.push(`CHECK (ISNULL(${first}) < 2)`, `CONSTRAINT ${over} CHECK (${odd} <> '')`);
    if (flags.indexed && flags.generated && flags.key) lines.push(`INDEX ${over} (${double} DESC)`);
    const versioned = flags.versioned && engine === "InnoDB" ? " WITH SYSTEM VERSIONING" : "";
    const comment = flags.commented ? ` COMMENT ${text(`of ${at}\n\u{1f40e}`)}` : "";
    const start = flags.key ? " AUTO_INCREMENT = 50" : "";
    made.push(
      `CREATE TABLE ${at} (${lines.join(", ")}) ENGINE=${engine}${start}${comment}${versioned}`,
      `INSERT INTO ${at} (${given.map((one) => one.column).join(", ")}) SELECT ${given.map(({ value }) => value).join(", ")} FROM (SELECT seq AS g FROM seq_1_to_30) s WHERE g <= ${rows}`,
      `CREATE VIEW ${view} AS SELECT *, ${own}.${twice}(1) AS ${free("a`b")} FROM ${at}`,
      `CREATE DEFINER = CURRENT_ROLE VIEW ${over} AS SELECT v.*, ${own}.${loud}('x') AS ${free("ou t")} FROM ${view} v WHERE ${own}.${twice}(2) = 4`,
    );
    if (versioned !== "") made.push(`DELETE FROM ${at} LIMIT 3`);
    if (flags.triggered)
      made.push(
        `CREATE TRIGGER ${view} BEFORE INSERT ON ${at} FOR EACH ROW BEGIN SET @seen = ';;'; END`,
        `CREATE TRIGGER ${over} BEFORE INSERT ON ${at} FOR EACH ROW PRECEDES ${view} SET @a = ${own}.${twice}(3)`,
        `CREATE TRIGGER ${after} BEFORE INSERT ON ${at} FOR EACH ROW FOLLOWS ${over} SET @a = ${odd}`,
      );
  }
  for (const one of tables) fill(one);

  const [parts, low, high] = [fresh(), fresh(), fresh()];
  /**
   * The server cannot write down a foreign key whose name has a backtick, and derives some names from tables' names.
   */
  const [one, two, toOne] = [fresh(), fresh(), fresh()].map(
    (some) => `\`${some.slice(1, -1).replaceAll("`", "'").slice(0, 50)}\``,
  );
  const [wide, empty, large] = [fresh(), fresh(), fresh()];
  /** mariadb-dump fails for names with two semicolons. */
  const [event, once] = [fresh(), fresh()].map((some) => some.replaceAll(";;", ";"));
  const columns = Array.from({ length: 1000 }, (_, n) => `w${n} INT DEFAULT ${n}`).join(", ");
  made.push(
    `CREATE TABLE ${parts} (t INT, c TEXT) PARTITION BY RANGE (t) (PARTITION ${quoted("p`a")} VALUES LESS THAN (10), PARTITION ${quoted("p b")} VALUES LESS THAN MAXVALUE)`,
    `INSERT INTO ${parts} SELECT seq, MD5(seq) FROM seq_1_to_20`,
    `CREATE TABLE ${low} (a INT, b INT, PRIMARY KEY (a, b)) ENGINE=Aria PARTITION BY HASH (b) PARTITIONS 3`,
    `INSERT INTO ${low} SELECT seq, seq FROM seq_1_to_9`,
    `CREATE TABLE ${one} (id INT PRIMARY KEY, other INT, self INT REFERENCES ${one} (id) ON DELETE SET NULL)`,
    `CREATE TABLE ${two} (id INT PRIMARY KEY, other INT, CONSTRAINT ${toOne} FOREIGN KEY (other) REFERENCES ${one} (id) ON UPDATE CASCADE)`,
    `ALTER TABLE ${one} ADD CONSTRAINT ${quoted("to two")} FOREIGN KEY (other) REFERENCES ${two} (id)`,
    `INSERT INTO ${one} VALUES (1, NULL, 1); INSERT INTO ${two} VALUES (1, 1)`.replace("; ", " ~~\n"),
    `UPDATE ${one} SET other = 1`,
    `CREATE TABLE ${wide} (${columns})`,
    `INSERT INTO ${wide} () VALUES ()`,
    `CREATE TABLE ${empty} (id INT, word VARCHAR(99) DEFAULT NEXTVAL(${down}), FULLTEXT (word), UNIQUE (id)) ENGINE=InnoDB`,
    `CREATE TABLE ${large} (x LONGTEXT, b LONGBLOB)`,
    `INSERT INTO ${large} VALUES (REPEAT('é', ${big ? 4_000_000 : 10}), REPEAT(UNHEX('00ab'), ${big ? 4_000_000 : 10}))`,
    ...(big ? [`CREATE TABLE ${high} AS SELECT seq, MD5(seq) AS word FROM seq_1_to_100000`] : []),
    `CREATE EVENT ${event} ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' ON COMPLETION PRESERVE COMMENT 'a' DO BEGIN SET @a = ';'; END`,
    `CREATE EVENT ${once} ON SCHEDULE AT '2037-01-01 00:00:00' DISABLE DO SET @a = 1`,
    `CREATE TABLE ${fresh()} (a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING`,
    "SET sql_mode = ORACLE",
    "CREATE PACKAGE pack AS FUNCTION f RETURN INT; END",
    "CREATE PACKAGE BODY pack AS FUNCTION f RETURN INT AS BEGIN RETURN 1; END; END",
  );
  return `SET collation_connection = utf8mb4_general_ci;\nDELIMITER ~~\n${made.join(" ~~\n")} ~~\n`;
}

/** Recreated by its owner. */
export const emptied = (database: string): string =>
  `DROP DATABASE ${quoted(database)}; CREATE DATABASE ${quoted(database)} CHARACTER SET utf8mb4;`;

const here = "= DATABASE()";
/** The name of each object, with the statement that shows it. */
export const things = `
SELECT JSON_ARRAY(CASE table_type WHEN 'VIEW' THEN 'VIEW' WHEN 'SEQUENCE' THEN 'SEQUENCE' ELSE 'TABLE' END, table_name) FROM information_schema.tables WHERE table_schema ${here}
UNION ALL SELECT JSON_ARRAY(routine_type, routine_name) FROM information_schema.routines WHERE routine_schema ${here}
UNION ALL SELECT JSON_ARRAY('TRIGGER', trigger_name) FROM information_schema.triggers WHERE trigger_schema ${here}
UNION ALL SELECT JSON_ARRAY('EVENT', event_name) FROM information_schema.events WHERE event_schema ${here}
ORDER BY 1;`;
export const settings = `
SELECT JSON_ARRAY(default_character_set_name, default_collation_name, schema_comment) FROM information_schema.schemata WHERE schema_name ${here}
UNION ALL SELECT JSON_ARRAY(event_object_table, trigger_name, action_order) FROM information_schema.triggers WHERE trigger_schema ${here};`;
/**
 * Also those that `*` leaves out: table, column, whether it keeps versions of its rows, and whether this column holds
 * their start.
 */
export const columns = `
SELECT JSON_ARRAY(c.table_name, c.column_name, t.table_type = 'SYSTEM VERSIONED', COALESCE(c.generation_expression = 'ROW START', 0))
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema ${here} AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY c.table_name, c.ordinal_position;`;
