import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { maxConnections, type DatabaseEngine } from "./engine.ts";
import { mysqlVerifier } from "./verifiers.ts";

const identifier = (name: string): string => `\`${name.replaceAll("`", "``")}\``;
const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
/** In a GRANT and a LIKE, `_` and `%` stand for others. */
const pattern = (name: string): string => name.replace(/[_%]/g, "\\$&");

/** The root of the official image, which signs in over the container's own socket only. */
const mariadb = (adminPassword: string, input: string) => ({
  command: ["mariadb", "--user=root", "--protocol=socket", "--batch", "--skip-column-names"],
  env: [`MYSQL_PWD=${adminPassword}`],
  input,
});

/**
 * Users of the database are named after it, with a number; those that may not sign in any more are locked, not dropped:
 * what they defined, views and routines, goes on with their rights.
 */
function arrangement({ databaseName, logins }: DatabaseSpec): string {
  const database = identifier(databaseName);
  const names = logins.map(({ username }) => literal(username)).join(", ");
  const gone = `SELECT User FROM mysql.user WHERE Host = '%' AND User LIKE ${literal(`${pattern(databaseName)}\\_%`)} AND User NOT IN (${names})`;
  return `
CREATE DATABASE IF NOT EXISTS ${database} CHARACTER SET utf8mb4;
${logins
  .map(
    ({ username, password }) => `
CREATE USER IF NOT EXISTS ${literal(username)}@'%' IDENTIFIED BY PASSWORD ${literal(mysqlVerifier(password))};
ALTER USER ${literal(username)}@'%' IDENTIFIED BY PASSWORD ${literal(mysqlVerifier(password))} ACCOUNT UNLOCK;
GRANT ALL PRIVILEGES ON ${identifier(pattern(databaseName))}.* TO ${literal(username)}@'%';
GRANT SELECT ON performance_schema.events_statements_summary_by_digest TO ${literal(username)}@'%';`,
  )
  .join("\n")}
DELIMITER //
BEGIN NOT ATOMIC
  FOR login IN (${gone}) DO
    EXECUTE IMMEDIATE CONCAT('ALTER USER ', QUOTE(login.User), '@''%'' ACCOUNT LOCK');
    EXECUTE IMMEDIATE CONCAT('KILL USER ', QUOTE(login.User));
  END FOR;
END //
DELIMITER ;
`;
}

/** Which statements take the most time, and nothing else that the performance schema would keep in memory. */
const statementStatistics = {
  "performance-schema": "ON",
  "performance-schema-digests-size": "200",
  "performance-schema-consumer-events-statements-current": "ON",
  "performance-schema-consumer-thread-instrumentation": "ON",
  "performance-schema-events-statements-history-size": "0",
  "performance-schema-events-statements-history-long-size": "0",
  "performance-schema-events-stages-history-size": "0",
  "performance-schema-events-stages-history-long-size": "0",
  "performance-schema-events-waits-history-size": "0",
  "performance-schema-events-waits-history-long-size": "0",
  "performance-schema-events-transactions-history-size": "0",
  "performance-schema-events-transactions-history-long-size": "0",
  "performance-schema-max-table-instances": "0",
  "performance-schema-max-table-handles": "0",
  "performance-schema-max-index-stat": "0",
  "performance-schema-max-mutex-instances": "0",
  "performance-schema-max-rwlock-instances": "0",
  "performance-schema-max-cond-instances": "0",
  "performance-schema-max-file-instances": "0",
  "performance-schema-max-socket-instances": "0",
  "performance-schema-max-metadata-locks": "0",
  "performance-schema-max-memory-classes": "0",
  "performance-schema-max-program-instances": "0",
  "performance-schema-max-prepared-statements-instances": "0",
};

export const mysql: DatabaseEngine = {
  dataPath: "/var/lib/mysql",
  env: ({ databaseName, adminPassword }) => [
    `MARIADB_ROOT_PASSWORD=${adminPassword}`,
    "MARIADB_ROOT_HOST=localhost",
    `MARIADB_DATABASE=${databaseName}`,
  ],
  command(limits) {
    const { memoryMb } = limits;
    const poolMb = Math.floor(memoryMb * 0.4);
    const settings = {
      "innodb-buffer-pool-size": `${poolMb}M`,
      "innodb-log-file-size": `${Math.min(512, Math.max(32, Math.floor(poolMb / 4)))}M`,
      "max-connections": String(maxConnections(limits)),
      "aria-pagecache-buffer-size": `${Math.max(8, Math.floor(memoryMb / 32))}M`,
      "key-buffer-size": "8M",
      "tmp-table-size": `${Math.max(8, Math.floor(memoryMb / 64))}M`,
      "max-heap-table-size": `${Math.max(8, Math.floor(memoryMb / 64))}M`,
      ...statementStatistics,
      "character-set-server": "utf8mb4",
      "bind-address": "0.0.0.0",
    };
    return [
      "mariadbd",
      "--skip-name-resolve",
      ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
    ];
  },
  stopSignal: "SIGTERM",
  // The one that sets it up is on the socket as well, but not on the network.
  ready: { program: ({ adminPassword }) => mariadb(adminPassword, "SELECT @@skip_networking"), says: "0" },
  arrange: async (spec, run) => void (await run(mariadb(spec.adminPassword, arrangement(spec)))),
  version: ({ adminPassword }, run) => run(mariadb(adminPassword, "SELECT VERSION()")),
};
