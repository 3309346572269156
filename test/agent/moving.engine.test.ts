import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { DatabaseHost } from "../support/database-host.ts";
import { testedImages } from "../support/database-spec.ts";

const manual = readFileSync(join(import.meta.dirname, "../../docs/manual/moving.md"), "utf8");
const host = await new DatabaseHost().open();
beforeAll(() => ensureImages([testedImages.postgresql, testedImages.mysql, testedImages.redis]), 15 * 60_000);
afterAll(() => host.close());

/** What a project of Supabase has that another server refuses. */
const supabase = `
CREATE SCHEMA extensions; CREATE EXTENSION "uuid-ossp" SCHEMA extensions; CREATE EXTENSION pg_stat_statements SCHEMA extensions;
CREATE SCHEMA auth AUTHORIZATION supabase_admin;
CREATE TABLE auth.users (id uuid PRIMARY KEY, email text); ALTER TABLE auth.users OWNER TO supabase_admin;
CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS 'SELECT nullif(current_setting(''jwt.sub'', true), '''')::uuid';
CREATE TABLE todos (id uuid PRIMARY KEY DEFAULT extensions.uuid_generate_v4(), owner uuid REFERENCES auth.users DEFAULT auth.uid());
ALTER TABLE todos ENABLE ROW LEVEL SECURITY; GRANT ALL ON todos TO anon;
CREATE POLICY reading ON todos FOR SELECT TO anon USING (owner = auth.uid());
INSERT INTO auth.users VALUES ('00000000-0000-4000-8000-000000000001', 'a@b.example');
INSERT INTO todos (owner) SELECT id FROM auth.users;
CREATE FUNCTION extensions.watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION extensions.watch();
CREATE PUBLICATION everything FOR ALL TABLES;`;

it("a dump of Supabase fills a PostgreSQL database by the manual's commands, and one of all schemas lacks only the policies' roles", async () => {
  const spec = await host.provision("postgresql", "moved");
  const [login] = spec.logins;
  const old = { ...spec, databaseName: "old" };
  await host.psql(
    spec,
    "SET client_min_messages = error; CREATE ROLE anon; CREATE ROLE supabase_admin; CREATE DATABASE old",
    "berth",
  );
  await host.psql(old, supabase, "berth");
  const [, taken = ""] = /`pg_dump (-Fc -n .*?) …`/.exec(manual) ?? [];
  for (const [file, options] of [
    ["some", taken],
    ["all", "-Fc"],
  ])
    await host.run(spec, ["sh", "-ec", `pg_dump --username=berth ${options} old >/tmp/${file}.dump`]);
  await host.psql(spec, "DROP DATABASE old; DROP ROLE anon, supabase_admin", "berth");
  const [commands = ""] = /^pg_restore -l .*?latest\.dump$/ms.exec(manual) ?? [];
  const address = `postgresql://${login?.username}:${login?.password}@127.0.0.1/${spec.databaseName}`;
  const restore = (file: string, pattern: string) =>
    host.run(spec, [
      "bash",
      "-ec",
      `cd /tmp; ${commands}`
        .replaceAll("latest", file)
        .replace(/'postgresql:.*?'/, address)
        .replace("grep -vE '", `$&${pattern}`),
    ]);
  await expect(restore("all", "")).rejects.toThrow('role "anon" does not exist');
  await host.psql(spec, /`(CREATE SCHEMA extensions; .*?)`/.exec(manual)?.[1] ?? "");
  await restore("some", "POLICY|");
  const read =
    "INSERT INTO todos DEFAULT VALUES; SELECT count(*), count(u.email) FROM todos t LEFT JOIN auth.users u ON u.id = t.owner";
  expect(await host.psql(spec, read)).toBe("2|1");
  expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
}, 240_000);

/** In mysqldump's words of MySQL 8.4. */
const dump = `-- MySQL dump 10.13  Distrib 8.4.3, for Linux (x86_64)
/*!50503 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS \`customers\`;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE \`customers\` (
  \`id\` int unsigned NOT NULL AUTO_INCREMENT,
  \`name\` varchar(255) COLLATE utf8mb4_0900_as_cs NOT NULL,
  \`code\` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin DEFAULT NULL,
  \`town\` varchar(20) DEFAULT NULL,
  \`meta\` json DEFAULT NULL,
  \`secret\` int DEFAULT NULL /*!80023 INVISIBLE */,
  PRIMARY KEY (\`id\`),
  UNIQUE KEY \`code\` (\`code\`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
INSERT INTO \`customers\` (\`id\`, \`name\`, \`code\`, \`town\`, \`meta\`, \`secret\`) VALUES (1,'utf8mb4_0900_bin','A','Köln','{\\"a\\": 1}',7),(2,'DEFINER=\`a\`@\`b\`','a',NULL,NULL,NULL);
DELIMITER ;;
/*!50003 SET collation_connection  = utf8mb4_0900_ai_ci */ ;;
/*!50106 CREATE*/ /*!50117 DEFINER=\`root\`@\`%\`*/ /*!50106 EVENT \`nightly\` ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' ON COMPLETION NOT PRESERVE ENABLE DO DELETE FROM customers WHERE id < 0 */ ;;
CREATE DEFINER=\`root\`@\`%\` FUNCTION \`found\`(wanted varchar(20)) RETURNS int
    READS SQL DATA
RETURN (SELECT id FROM customers WHERE town = wanted) ;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=\`root\`@\`%\` SQL SECURITY DEFINER */
/*!50001 VIEW \`named\` AS select \`customers\`.\`name\` AS \`name\` from \`customers\` where (\`customers\`.\`town\` <> (_utf8mb4'x' collate utf8mb4_0900_ai_ci)) */;
`;

it("a dump of MySQL 8 fills a MariaDB database by the manual's command, and later tables and routines work with its columns", async () => {
  const spec = await host.provision("mysql", "moved");
  await host.put(spec, "/tmp/dump.sql", Buffer.from(dump));
  const command = /^\(echo .*?(?=\| berth databases connect)/ms.exec(manual)?.[0] ?? "";
  await host.mariadb(spec, await host.run(spec, ["bash", "-ec", `cd /tmp; ${command}`]));
  expect(await host.mariadb(spec, "SELECT id, name, code, town FROM customers")).toBe(
    "1\tutf8mb4_0900_bin\tA\tKöln\n2\tDEFINER=`a`@`b`\ta\tNULL",
  );
  await host.mariadb(
    spec,
    "CREATE TABLE later (town VARCHAR(20)); INSERT INTO later VALUES ('koln'); DELETE FROM customers WHERE id = 2",
  );
  expect(
    await host.mariadb(spec, "SELECT id, found(l.town) FROM customers c JOIN later l ON l.town = c.town"),
  ).toBe("1\t1");
  const made = "SELECT name FROM named; SELECT event_name FROM information_schema.events";
  expect(await host.mariadb(spec, made)).toBe("utf8mb4_0900_bin\nnightly");
  expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
}, 240_000);

it("the manual's command copies the keys of another Redis, and names those that it cannot", async () => {
  const spec = await host.provision("redis", "moved");
  const [login] = spec.logins;
  const old = "redis-cli -p 7000";
  const ours = `redis://${login?.username}:${login?.password}@127.0.0.1:6379`;
  const command = /^redis-cli -u "\$OLD".*?^done/ms.exec(manual)?.[0] ?? "";
  const copy = `OLD=redis://127.0.0.1:7000 NEW=${ours} sh -c '${command}'`;
  const start = `redis-server --port 7000 --save "" --daemonize yes >/dev/null; until ${old} PING >/dev/null 2>&1; do :; done`;
  const fill = `${old} SET "a key \\\\" v >/dev/null; ${old} SET e v EX 86400 >/dev/null; ${old} RPUSH l 1 2 >/dev/null`;
  const run = (script: string) => host.run(spec, ["sh", "-ec", script]);
  expect(await run(`${start}; ${fill}; ${copy} 2>/dev/null`)).toBe("");
  const read = `redis-cli -u ${ours} 2>/dev/null`;
  expect(await run(`${read} GET "a key \\\\"; ${read} LRANGE l 0 -1; ${read} DBSIZE`)).toBe("v\n1\n2\n3");
  expect(Number(await run(`${read} TTL e`))).toBeGreaterThan(80_000);
  expect(await run(`${old} DEL e l >/dev/null; ${copy} 2>/dev/null`)).toBe(
    "a key \\: BUSYKEY Target key name already exists.",
  );
}, 120_000);
