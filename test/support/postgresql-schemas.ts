import fc from "fast-check";

/** Generated PostgreSQL schemas, and a reader of a database that shares nothing with the product. */

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

const awkward = [
  "t c n x a g d b s select table user order group all from default row only end null true current_user",
  "count sum record_out hash_record_extended json_build_array pg_class pg_temp oid UPPER a.b $1 $$ :name %I a;b -- /*",
  'a"b "" it\'s a\\b \\ \u017elu\u0165 \u{1f40e} \u540d\u524d i\u0307',
]
  .flatMap((some) => some.split(" "))
  .concat("a b", " ", "line\nbreak", "tab\there", "x".repeat(63), "é".repeat(31));
const fits = (name: string) =>
  name !== "" &&
  !name.includes("\0") &&
  Buffer.byteLength(name) <= 63 &&
  Buffer.from(name).toString() === name;
const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...awkward) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 20 }).filter(fits) },
);
/** Names of system columns, which no other column may have. */
const systemColumns = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];
const columnName = name.filter((one) => !systemColumns.includes(one));
const names = (count: number) => fc.uniqueArray(name, { minLength: count, maxLength: count });

/** A type, and a value of it that depends on `g`. */
const plain: [type: string, value: string][] = [
  ["int", "g"],
  ["smallint", "g"],
  ["bigint", "g * 4000000000"],
  ["numeric", "g / 7.0"],
  ["numeric(20, 2)", "CASE WHEN g = 1 THEN numeric 'NaN' ELSE g END"],
  ["real", "sqrt(g)"],
  ["float8", "CASE g WHEN 1 THEN float8 'NaN' WHEN 2 THEN '-Infinity' ELSE sqrt(g) END"],
  ["money", "(g * 1.5)::numeric::money"],
  ["text", "E'é\\t\\\\N' || repeat('\n', g % 3) || g"],
  ['text COLLATE "C"', "md5(g::text)"],
  ["varchar(40)", "md5(g::text)"],
  ["char(9)", "g::text"],
  ['"char"', "'a'"],
  ["name", "'n' || g"],
  ["bytea", "decode(md5(g::text), 'hex')"],
  ["boolean", "g % 2 = 0"],
  ["date", "date '2026-01-01' + g"],
  ["time", "time '01:02:03.4' + g * interval '1 minute'"],
  ["timetz", "timetz '01:02:03+05'"],
  ["timestamp", "timestamp '0044-03-15 00:00 BC' + g * interval '1 hour'"],
  [
    "timestamptz",
    "CASE g WHEN 1 THEN timestamptz 'infinity' ELSE timestamptz '2026-01-01 00:00+03' + g * interval '1 hour' END",
  ],
  ["interval", "g * interval '1 month 2 days 3.5 seconds'"],
  ["uuid", "md5(g::text)::uuid"],
  ["json", "json_build_object('a', g, 'b', '\"')"],
  ["jsonb", "jsonb_build_object('a', g, 'b', NULL)"],
  ["xml", "('<a b=\"' || g || '\"/>')::xml"],
  ["inet", "inet '10.0.0.0/8' + g"],
  ["cidr", "'10.0.0.0/8'"],
  ["macaddr", "'08:00:2b:01:02:03'"],
  ["bit(3)", "(g % 8)::bit(3)"],
  ["varbit", "g::bit(20)::varbit"],
  ["point", "point(g, -g)"],
  ["path", "path '((0,0),(1,1))'"],
  ["tsvector", "to_tsvector('simple', 'a b ' || g)"],
  ["tsquery", "'a & b'"],
  ["int[]", "ARRAY[g, NULL]"],
  ["text[][]", "ARRAY[['a,\"b{', NULL], ['', g::text]]"],
  ["daterange", "daterange('2026-01-01', date '2026-01-02' + g)"],
  ["nummultirange", "nummultirange(numrange(g, g + 1), numrange(g + 3, NULL))"],
  ["regclass", "'pg_catalog.pg_class'"],
  ["pg_lsn", "'0/16B3748'"],
];

const column = fc.record({
  name: columnName,
  /** Beyond the plain ones: the enumeration, the domain, the row type, an array of rows, a range. */
  kind: fc.nat(plain.length + 4),
  nullable: fc.boolean(),
});
const tableFlags = fc.record({
  unlogged: fc.boolean(),
  key: fc.boolean(),
  generated: fc.boolean(),
  checked: fc.boolean(),
  indexed: fc.boolean(),
  triggered: fc.boolean(),
  secured: fc.boolean(),
  commented: fc.boolean(),
  references: fc.boolean(),
});
const table = fc.record({
  columns: fc.uniqueArray(column, { maxLength: 9, selector: (one) => one.name }),
  rows: fc.nat(30),
  flags: tableFlags,
});

export const schema = fc.record({
  schemas: names(3).filter((all) => all.every((one) => !one.startsWith("pg_") && one !== "public")),
  relations: names(40),
  labels: names(3),
  fields: fc.uniqueArray(columnName, { minLength: 2, maxLength: 3 }),
  tables: fc.array(table, { minLength: 6, maxLength: 6 }),
  big: fc.boolean(),
  extensions: fc.subarray(["pgcrypto", "citext", "hstore", "pg_trgm", "btree_gist", "ltree", "unaccent"]),
});
type Table = typeof table extends fc.Arbitrary<infer T> ? T : never;
type Schema = typeof schema extends fc.Arbitrary<infer T> ? T : never;

/** The statements that create the schema in an empty database. */
export function statementsOf({
  schemas,
  relations,
  labels,
  fields,
  tables,
  big,
  extensions,
}: Schema): string {
  const places = ["public", ...schemas];
  let count = 0;
  const fresh = (): string => {
    const at = count++;
    return `${quoted(places[at % places.length] ?? "")}.${quoted(relations[at] ?? `more${at}`)}`;
  };
  const [mood, word, pair, span, shout, check, act, total] = [
    fresh(),
    fresh(),
    fresh(),
    fresh(),
    fresh(),
    fresh(),
    fresh(),
    fresh(),
  ];
  const row = (others: string) =>
    `ROW(${fields.map((_, at) => (at === 0 ? "g" : others)).join(", ")})::${pair}`;
  const types: [type: string, value: string][] = [
    ...plain,
    [mood, `${text(labels[0] ?? "")}::${mood}`],
    [word, `('w' || g)::${word}`],
    [pair, row("'x,\"'")],
    [`${pair}[]`, `ARRAY[${row("NULL")}]`],
    [span, `${span}(g, g + 2)`],
  ];
  const made: string[] = [
    ...schemas.map((one) => `CREATE SCHEMA ${quoted(one)}`),
    ...extensions.map(
      (one, at) => `CREATE EXTENSION ${one} SCHEMA ${quoted(places[at % places.length] ?? "")}`,
    ),
    `CREATE TYPE ${mood} AS ENUM (${labels.map(text).join(", ")})`,
    `CREATE DOMAIN ${word} AS text NOT NULL DEFAULT 'w' CHECK (VALUE <> 'bad')`,
    `CREATE TYPE ${pair} AS (${fields.map((one, at) => `${quoted(one)} ${at === 0 ? "int" : "text"}`).join(", ")})`,
    `CREATE TYPE ${span} AS RANGE (subtype = int4)`,
    `CREATE FUNCTION ${shout}(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT pg_catalog.upper($1)'`,
    `CREATE FUNCTION ${check}(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS ${text(`BEGIN RETURN ${shout}($1) IS NOT NULL; END`)}`,
    `CREATE FUNCTION ${act}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`,
    `CREATE AGGREGATE ${total}(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')`,
  ];
  const [down, unused] = [fresh(), fresh()];
  made.push(
    `CREATE SEQUENCE ${down} AS bigint INCREMENT -3 MINVALUE -9000000000 MAXVALUE 100 START 7`,
    `SELECT nextval(${text(down)}), nextval(${text(down)})`,
    `CREATE SEQUENCE ${unused}`,
    `ALTER SEQUENCE ${unused} RESTART WITH 55`,
  );

  let parent: string | undefined;
  function fill({ columns, rows, flags }: Table): void {
    const at = fresh();
    const own = columns.map(({ name: one, kind, nullable }) => {
      const [type, plainly] = types[kind] ?? types[0]!;
      const value = `(${plainly})::${type.replace(/ COLLATE.*/, "")}`;
      return { column: quoted(one), type, value, nullable: nullable && type !== word };
    });
    const free = (wanted: string) =>
      columns.some(({ name: one }) => one === wanted) ? `${wanted}_more` : wanted;
    const [key, double, to] = [free("id"), free("twice"), free("parent")].map(quoted);
    const lines = own.map(
      ({ column: one, type, nullable }) => `${one} ${type}${nullable ? "" : " NOT NULL"}`,
    );
    if (flags.key) lines.push(`${key} bigint GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 2) PRIMARY KEY`);
    const first = own[0];
    if (flags.generated && flags.key)
      lines.push(`${double} text GENERATED ALWAYS AS (${key} * 2 || 'x') STORED`);
    if (flags.references && parent !== undefined && !flags.unlogged)
      lines.push(`${to} bigint REFERENCES ${parent} DEFERRABLE INITIALLY DEFERRED`);
    made.push(`CREATE ${flags.unlogged ? "UNLOGGED " : ""}TABLE ${at} (${lines.join(", ")})`);
    if (flags.checked) made.push(`ALTER TABLE ${at} ADD CHECK (${check}('a'))`);
    if (own.length > 0)
      made.push(
        `INSERT INTO ${at} (${own.map(({ column: one }) => one).join(", ")}) SELECT ${own
          .map(({ value, nullable }) => (nullable ? `CASE WHEN g % 4 <> 0 THEN ${value} END` : value))
          .join(", ")} FROM generate_series(1, ${rows}) g`,
      );
    else made.push(`INSERT INTO ${at} DEFAULT VALUES`);
    if (flags.indexed) {
      made.push(`CREATE INDEX ON ${at} ((${shout}(${first ? `${first.column} IS NULL` : "true"}::text)))`);
      if (flags.key) made.push(`CREATE UNIQUE INDEX ON ${at} (${key} DESC) WHERE ${key} > 3`);
    }
    if (flags.triggered)
      made.push(
        `CREATE TRIGGER ${quoted(relations[count] ?? "act")} BEFORE INSERT OR UPDATE ON ${at} FOR EACH ROW EXECUTE FUNCTION ${act}()`,
      );
    if (flags.secured)
      made.push(
        `CREATE POLICY ${quoted(relations[count] ?? "own")} ON ${at} USING (false)`,
        `ALTER TABLE ${at} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`,
      );
    if (flags.commented) made.push(`COMMENT ON TABLE ${at} IS ${text(`of ${at}\n`)}`);
    const [view, over] = [fresh(), fresh()];
    made.push(
      `CREATE VIEW ${view} AS SELECT *, ${shout}('a') AS ${quoted("shouted one")} FROM ${at}`,
      `CREATE VIEW ${over} AS SELECT v.* FROM ${view} v WHERE ${check}('b')`,
    );
    if (flags.key && !flags.unlogged) parent ??= at;
  }
  for (const one of tables) fill(one);

  const [parts, low, high, child] = [fresh(), fresh(), fresh(), fresh()];
  const [booked, derived, large, wide] = [fresh(), fresh(), fresh(), fresh()];
  const columns = Array.from({ length: 300 }, (_, n) => `w${n} int DEFAULT ${n}`).join(", ");
  made.push(
    `CREATE TABLE ${parts} (t int, c text) PARTITION BY RANGE (t)`,
    `CREATE TABLE ${low} PARTITION OF ${parts} FOR VALUES FROM (MINVALUE) TO (10)`,
    `CREATE TABLE ${high} PARTITION OF ${parts} DEFAULT`,
    `CREATE INDEX ON ${parts} (c)`,
    `INSERT INTO ${parts} SELECT g, g::text FROM generate_series(1, 20) g`,
    `CREATE TABLE ${wide} (${columns})`,
    `INSERT INTO ${wide} DEFAULT VALUES`,
    `CREATE TABLE ${child} (extra int) INHERITS (${wide})`,
    `INSERT INTO ${child} SELECT FROM generate_series(1, 3)`,
    `CREATE TABLE ${booked} (n int, during int4range, EXCLUDE USING gist (during WITH &&))`,
    `INSERT INTO ${booked} SELECT g, int4range(g, g + 1) FROM generate_series(1, 9) g`,
    `CREATE MATERIALIZED VIEW ${derived} AS SELECT count(*) FROM ${booked}`,
    `CREATE TABLE ${large} (x text, b bytea)`,
    `INSERT INTO ${large} SELECT repeat('é', ${big ? 6_000_000 : 10}), decode(repeat('ab', ${big ? 11_000_000 : 10}), 'hex')`,
    "SELECT lo_from_bytea(0, decode(repeat('cd', 100000), 'hex'))",
  );
  return `${made.join(";\n")};`;
}

/** Empties the database again; objects of Berth's in the owner's schemas are removed with them. */
export const emptied = `
DO 'DECLARE one name; BEGIN
  FOR one IN SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ ''^pg_'' AND nspname <> ''information_schema'' LOOP
    EXECUTE pg_catalog.format(''DROP SCHEMA %I CASCADE'', one);
  END LOOP;
  PERFORM pg_catalog.lo_unlink(oid) FROM pg_catalog.pg_largeobject_metadata;
END';
CREATE SCHEMA public;`;

const ours = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";
const notOfExtension = (oid: string) =>
  `NOT EXISTS (SELECT FROM pg_depend x WHERE x.objid = ${oid} AND x.deptype = 'e')`;

/** One line for each object of the database, as the server itself writes its definition. */
export const definitions = `
SET search_path = pg_catalog;
WITH named AS (SELECT c.*, format('%I.%I', n.nspname, c.relname) AS at FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${ours} AND ${notOfExtension("c.oid")})
SELECT to_json(line) FROM (
  SELECT concat_ws(' ', 'schema', n.nspname) FROM pg_namespace n WHERE ${ours}
  UNION ALL SELECT concat_ws(' ', at, relkind, relpersistence, relrowsecurity, relforcerowsecurity, reloptions, obj_description(oid, 'pg_class'), pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid)) FROM named
  UNION ALL SELECT concat_ws(' ', at, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, a.attislocal, l.collname, pg_get_expr(d.adbin, d.adrelid))
    FROM named JOIN pg_attribute a ON a.attrelid = named.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL SELECT at || pg_get_viewdef(oid) FROM named WHERE relkind IN ('v', 'm')
  UNION ALL SELECT pg_get_indexdef(oid) FROM named WHERE relkind IN ('i', 'I')
  UNION ALL SELECT concat_ws(' ', k.conname, k.conrelid::regclass, k.contypid::regtype, pg_get_constraintdef(k.oid)) FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace WHERE ${ours} AND ${notOfExtension("k.oid")}
  UNION ALL SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN named ON named.oid = g.tgrelid WHERE NOT g.tgisinternal
  UNION ALL SELECT concat_ws(' ', 'inherits', inhrelid::regclass, inhparent::regclass, inhseqno) FROM pg_inherits JOIN named ON named.oid = inhrelid
  UNION ALL SELECT concat_ws(' ', p.oid::regprocedure, p.prokind, CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE ${ours} AND ${notOfExtension("p.oid")}
  UNION ALL SELECT concat_ws(' ', t.oid::regtype, t.typtype, t.typdefault, t.typnotnull, format_type(t.typbasetype, t.typtypmod), (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid))
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE ${ours} AND ${notOfExtension("t.oid")}
  UNION ALL SELECT concat_ws(' ', schemaname, sequencename, last_value, start_value, min_value, max_value, increment_by, cycle, data_type) FROM pg_sequences
  UNION ALL SELECT concat_ws(' ', schemaname, tablename, policyname, cmd, qual, with_check) FROM pg_policies
  UNION ALL SELECT concat_ws(' ', 'extension', extname, nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname <> 'pg_stat_statements'
  UNION ALL SELECT 'large object ' || oid || ' ' || md5(lo_get(oid)) FROM pg_largeobject_metadata
) all_of (line) ORDER BY line COLLATE "C";`;

/** The tables with rows of their own, quoted for statements. */
export const tablesWithRows = `
SELECT pg_catalog.to_json(pg_catalog.format('%I.%I', n.nspname, c.relname)) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND ${ours} ORDER BY n.nspname, c.relname;`;
