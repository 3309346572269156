import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Run } from "../../agent/databases/database-engine.ts";
import { engines } from "../../agent/databases/index.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { databaseNameOf, usernameOf } from "../../worker/domain/database-engines.ts";
import { DatabaseHost } from "../support/database-host.ts";

const host = await new DatabaseHost().open();
beforeAll(() => ensureImages(databaseImages), 15 * 60_000);
afterAll(() => host.close());

const names = [
  "pg pg-x pg-pg pgx p 0 1-2-3 select user role public none default current-user replication all on off mysql root",
  "mariadb-sys performance-schema sys information-schema berth berth-reader postgres template0 template1 admin",
  ["x".repeat(63), `${"a-".repeat(31)}a`, `pg${"-x".repeat(30)}`].join(" "),
].flatMap((line) => line.split(" "));

type Words = [command: string[], input: string];
/** What makes the database beside the first one, where nothing else does, and a sign-in that prints 1. */
type Way = { create(name: string): Words; sign(name: string, user: string, password: string): Words };
const ways: Record<"postgresql" | "mysql" | "redis", Way> = {
  postgresql: {
    create: (name) => [["psql", "--username=berth", "--dbname=postgresql_data"], `CREATE DATABASE ${name};`],
    sign: (name, user) => [["psql", `--username=${user}`, `--dbname=${name}`, "-At"], "SELECT 1;"],
  },
  mysql: {
    create: () => [["true"], ""],
    sign: (name, user, password) => [
      [
        "mariadb",
        `--user=${user}`,
        `--password=${password}`,
        "--protocol=tcp",
        "--host=127.0.0.1",
        "-N",
        name,
      ],
      "CREATE TABLE t (id INT); SELECT 1;",
    ],
  },
  redis: {
    create: () => [["true"], ""],
    sign: (_, user, password) => [
      ["redis-cli", "--user", user, "--pass", password, "--no-auth-warning"],
      "DEL one\nINCR one\n",
    ],
  },
};

it.each(["postgresql", "mysql", "redis"] as const)(
  "whatever a %s database is named, its server makes its logins and lets them in, and the next ones",
  async (type) => {
    const spec = host.specOf(type);
    await host.does("database.provision", { database: spec });
    const run: Run = ({ command, input, env = [] }) => host.run(spec, ["env", ...env, ...command], input);
    for (const name of names) {
      const databaseName = databaseNameOf(name, randomBytes(8));
      const login = (generation: number) => ({
        username: usernameOf(databaseName, generation),
        password: randomBytes(12).toString("hex"),
      });
      const way = ways[type];
      const [command, input] = way.create(databaseName);
      await run({ command, input });
      const [first, next] = [login(1), login(2)];
      for (const logins of [[first], [first, next], [next]])
        await engines[type].arrange({ ...spec, databaseName, logins }, run);
      const [client, statement] = way.sign(databaseName, next.username, next.password);
      expect(`${name}: ${(await run({ command: client, input: statement })).split("\n").at(-1)}`).toBe(
        `${name}: 1`,
      );
    }
  },
  300_000,
);
