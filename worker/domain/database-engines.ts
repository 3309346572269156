import type { DatabaseType } from "../../protocol/states.ts";

type Engine = {
  /** As people know it. */
  name: string;
  /** The official image, or the host's substitute under the same name. */
  image: string;
  port: number;
  scheme: string;
  /**
   * Parts of the public address: the scheme, and the query that requires a verified server in the syntax of the
   * engine's own clients.
   */
  publicScheme: string;
  publicQuery: string;
  /** The default variable of a linked site. */
  variable: string;
  /** The ending of a downloaded backup. */
  backupExtension: string;
  /** How to free disk space; after deleting rows alone, the files keep their size. */
  freeDiskAdvice: string;
};

/** Redis 7.2 is the last version whose licence permits hosting services. */
export const databaseEngines: Record<DatabaseType, Engine> = {
  postgresql: {
    name: "PostgreSQL",
    image: "postgres:17",
    port: 5432,
    scheme: "postgresql",
    publicScheme: "postgresql",
    publicQuery: "?sslmode=verify-full&sslrootcert=ca.pem",
    variable: "DATABASE_URL",
    backupExtension: "pgdump",
    freeDiskAdvice: "delete rows and run VACUUM FULL on their tables",
  },
  mysql: {
    name: "MariaDB (MySQL)",
    image: "mariadb:11.4",
    port: 3306,
    scheme: "mysql",
    publicScheme: "mysql",
    publicQuery: "?ssl-mode=VERIFY_CA&ssl-ca=ca.pem",
    variable: "DATABASE_URL",
    backupExtension: "sql.gz",
    freeDiskAdvice: "delete rows and run OPTIMIZE TABLE on their tables",
  },
  redis: {
    name: "Redis",
    image: "redis:7.2",
    port: 6379,
    scheme: "redis",
    publicScheme: "rediss",
    publicQuery: "",
    variable: "REDIS_URL",
    backupExtension: "rdb",
    freeDiskAdvice: "delete keys, which frees disk space at the next rewrite of the append-only file",
  },
};

const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * The name on the server: the database's name, truncated, and eight random characters; an identifier that needs no
 * quotes. PostgreSQL reserves names and logins that begin with `pg_`.
 */
export function databaseNameOf(name: string, random: Uint8Array): string {
  const suffix = Array.from(random.subarray(0, 8), (byte) => digits.charAt(byte & 31)).join("");
  const stem = name.replaceAll("-", "_").slice(0, 40).replace(/_+$/, "");
  const whole = `${stem}_${suffix}`;
  return /^(?!pg_)[a-z]/.test(whole) ? whole : `db_${whole}`;
}

/** Every password has its own user. */
export const usernameOf = (databaseName: string, generation: number): string =>
  `${databaseName}_${generation}`;

/** The host name in the account's network; `.internal` does not exist on the internet. */
export const databaseHostname = (name: string): string => `${name}.internal`;

type Login = { username: string; password: string };

const authority = ({ username, password }: Login, host: string, port: number): string =>
  `${username}:${encodeURIComponent(password)}@${host}:${port}`;
/** Redis databases are numbered. */
const pathOf = (database: { type: DatabaseType; databaseName: string }): string =>
  database.type === "redis" ? "0" : database.databaseName;

export function connectionString(
  database: { type: DatabaseType; name: string; databaseName: string },
  login: Login,
): string {
  const { scheme, port } = databaseEngines[database.type];
  return `${scheme}://${authority(login, databaseHostname(database.name), port)}/${pathOf(database)}`;
}

/** The connection string for public access, over TLS. */
export function publicConnectionString(
  database: { type: DatabaseType; databaseName: string },
  login: Login,
  { host, port }: { host: string; port: number },
): string {
  const { publicScheme, publicQuery } = databaseEngines[database.type];
  return `${publicScheme}://${authority(login, host, port)}/${pathOf(database)}${publicQuery}`;
}

/** The range of public ports on a host, below the kernel's ephemeral ports. */
export const publicPorts = { first: 20_000, count: 10_000 };
