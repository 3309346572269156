import type { DatabaseType } from "../../protocol/states.ts";

type Engine = {
  /** The official image, or what the host has in its place under this name. */
  image: string;
  port: number;
  scheme: string;
  /** The variable a linked site is given, unless its owner names another. */
  variable: string;
};

/** Redis 7.2 is the last whose licence lets a hosting service offer it. */
export const databaseEngines: Record<DatabaseType, Engine> = {
  postgresql: { image: "postgres:17", port: 5432, scheme: "postgresql", variable: "DATABASE_URL" },
  mysql: { image: "mariadb:11.4", port: 3306, scheme: "mysql", variable: "DATABASE_URL" },
  redis: { image: "redis:7.2", port: 6379, scheme: "redis", variable: "REDIS_URL" },
};

const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** What the server calls it: the name, cut, and eight random characters; an identifier that needs no quotes. */
export function databaseNameOf(name: string, random: Uint8Array): string {
  const suffix = Array.from(random.subarray(0, 8), (byte) => digits.charAt(byte & 31)).join("");
  const stem = name.replaceAll("-", "_").slice(0, 40).replace(/_+$/, "");
  return `${/^[a-z]/.test(stem) ? stem : `db_${stem}`}_${suffix}`;
}

/** Every password has a user of its own. */
export const usernameOf = (databaseName: string, generation: number): string =>
  `${databaseName}_${generation}`;

/** Its address in the account's network; `.internal` is nobody's on the internet. */
export const databaseHostname = (name: string): string => `${name}.internal`;

export function connectionString(
  database: { type: DatabaseType; name: string; databaseName: string },
  login: { username: string; password: string },
): string {
  const { scheme, port } = databaseEngines[database.type];
  // Redis numbers its databases.
  const path = database.type === "redis" ? "0" : database.databaseName;
  const { username, password } = login;
  return `${scheme}://${username}:${encodeURIComponent(password)}@${databaseHostname(database.name)}:${port}/${path}`;
}
