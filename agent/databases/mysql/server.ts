import { createHmac } from "node:crypto";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import {
  certificateFile,
  keyFile,
  maxConnections,
  type DatabaseEngine,
  type Held,
  type Writes,
} from "../database-engine.ts";
import { mysqlVerifier } from "../verifiers.ts";

export const identifier = (name: string): string => `\`${name.replaceAll("`", "``")}\``;
export const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
/** In a GRANT and a LIKE, `_` and `%` are wildcards. */
const pattern = (name: string): string => name.replace(/[_%]/g, "\\$&");
/** All of one database, and nothing else. */
export const everythingIn = (databaseName: string): string => `${identifier(pattern(databaseName))}.*`;

/** The official image's root, which signs in over the container's own socket only. */
const mariadb = (adminPassword: string, input: string) => ({
  command: ["mariadb", "--user=root", "--protocol=socket", "--batch", "--skip-column-names"],
  env: [`MYSQL_PWD=${adminPassword}`],
  input,
});

/** Lets a session check that it uses TLS, and its owner see which statements take time. */
const readsPerformance = (user: string): string => `
GRANT SELECT ON performance_schema.events_statements_summary_by_digest TO ${user};
GRANT SELECT (PROCESSLIST_ID, CONNECTION_TYPE) ON performance_schema.threads TO ${user};`;

const readerName = "berth_reader";
const readerAccount = `'${readerName}'@'localhost'`;

/** The reader signs in over the container's own socket only. */
export const readerOf = (adminPassword: string): { name: string; password: string } => ({
  name: readerName,
  password: createHmac("sha256", adminPassword).update(readerName).digest("hex"),
});

type Read = Pick<DatabaseSpec, "databaseName" | "adminPassword">;

/** Returns 1 if a reader for this database exists. */
export const hasReader = ({ databaseName, adminPassword }: Read): string => `
SELECT COUNT(*) FROM mysql.global_priv g JOIN mysql.db d ON d.User = g.User AND d.Host = g.Host
WHERE g.User = '${readerName}' AND g.Host = 'localhost' AND d.Db = ${literal(pattern(databaseName))}
  AND JSON_VALUE(g.Priv, '$.authentication_string') = ${literal(mysqlVerifier(readerOf(adminPassword).password))};`;

/**
 * The user that reads the database for a backup. It can only read, because a table may have been replaced by a view,
 * whose functions run with the reader's rights. The last privilege exempts it from the TLS check. Created at each
 * start, because it cannot be created on a full disk.
 */
export const employsReader = ({ databaseName, adminPassword }: Read): string => `
CREATE OR REPLACE USER ${readerAccount} IDENTIFIED BY PASSWORD ${literal(mysqlVerifier(readerOf(adminPassword).password))};
GRANT SELECT, EXECUTE, SHOW VIEW, TRIGGER, EVENT ON ${everythingIn(databaseName)} TO ${readerAccount};
GRANT SELECT ON mysql.proc TO ${readerAccount};
GRANT CONNECTION ADMIN ON *.* TO ${readerAccount};
${readsPerformance(readerAccount)}`;

/** A block that goes on after statements that fail: a session ends at the first error. */
export const goingOn = (statements: string): string => `
DELIMITER //
BEGIN NOT ATOMIC
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  ${statements}
END //
DELIMITER ;
`;

/**
 * Lets the reader open views that count a sequence with the rights of whoever reads them. On a full disk, where it fails, these are
 * copied without being opened.
 */
export const readsSequences = (databaseName: string): string =>
  goingOn(`FOR one IN (SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = ${literal(databaseName)} AND table_type = 'SEQUENCE') DO
    EXECUTE IMMEDIATE CONCAT('GRANT INSERT ON ', ${literal(identifier(databaseName))}, '.\`', REPLACE(one.name, '\`', '\`\`'), '\` TO ${readerAccount.replaceAll("'", "''")}');
  END FOR;`);

/** Beside those of each login, for backups, rotations and questions: clients that keep all of theirs keep nobody else out. */
const ownConnections = 9;

/**
 * Users are named after the database, with a number. Former logins are locked, not dropped: their views and triggers
 * keep running with their rights. Only the definer of a routine can see its text, so the definer is a role of all
 * logins.
 */
function arrangement(spec: DatabaseSpec): string {
  const { databaseName, logins, limits } = spec;
  const database = identifier(databaseName);
  const names = logins.map(({ username }) => literal(username)).join(", ");
  const gone = `SELECT User FROM mysql.user WHERE Host = '%' AND User LIKE ${literal(`${pattern(databaseName)}\\_%`)} AND User NOT IN (${names})`;
  return `
CREATE DATABASE IF NOT EXISTS ${database} CHARACTER SET utf8mb4;
CREATE ROLE IF NOT EXISTS ${database};
GRANT ALL PRIVILEGES ON ${everythingIn(databaseName)} TO ${database};
${logins
  .map(
    ({ username, password }) => `
CREATE USER IF NOT EXISTS ${literal(username)}@'%' IDENTIFIED BY PASSWORD ${literal(mysqlVerifier(password))};
ALTER USER ${literal(username)}@'%' IDENTIFIED BY PASSWORD ${literal(mysqlVerifier(password))} WITH MAX_USER_CONNECTIONS ${maxConnections(limits)} ACCOUNT UNLOCK;
GRANT ALL PRIVILEGES ON ${everythingIn(databaseName)} TO ${literal(username)}@'%';
GRANT ${database} TO ${literal(username)}@'%';
SET DEFAULT ROLE ${database} FOR ${literal(username)}@'%';
${readsPerformance(`${literal(username)}@'%'`)}`,
  )
  .join("\n")}
${employsReader(spec)}
UPDATE mysql.proc SET definer = ${literal(databaseName)} WHERE db = ${literal(databaseName)} AND definer <> ${literal(databaseName)};
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

/** The remaining rights free space: TRUNCATE and DROP do so at once. */
const takesRoom =
  "INSERT, UPDATE, CREATE, ALTER, INDEX, REFERENCES, CREATE TEMPORARY TABLES, CREATE VIEW, CREATE ROUTINE, TRIGGER, EVENT";

/**
 * Applies to every user with rights on the database, because routines run with their definer's rights. Sessions keep
 * their rights, so those that lose some are closed.
 */
function writesOf({ databaseName }: Held, writes: Writes): string {
  const all = everythingIn(databaseName);
  const changes: Record<Writes, [change: string, whose: string, ends: string]> = {
    all: [`GRANT ALL PRIVILEGES ON ${all} TO `, "TRUE", "FALSE"],
    less: [`REVOKE ${takesRoom} ON ${all} FROM `, "Insert_priv = 'Y'", "TRUE"],
    // Some rights stay, because otherwise nothing would identify the users.
    none: [`REVOKE ${takesRoom}, SELECT, DELETE, DROP, EXECUTE ON ${all} FROM `, "Select_priv = 'Y'", "TRUE"],
  };
  const [change, whose, ends] = changes[writes];
  const named = `Db = ${literal(pattern(databaseName))} AND Host IN ('', '%')`;
  return `
DELIMITER //
BEGIN NOT ATOMIC
  FOR one IN (SELECT User, Host FROM mysql.db WHERE ${named} AND ${whose}) DO
    EXECUTE IMMEDIATE CONCAT(${literal(change)}, QUOTE(one.User), IF(one.Host = '', '', '@''%'''));
    IF ${ends} AND one.Host <> '' THEN EXECUTE IMMEDIATE CONCAT('KILL USER ', QUOTE(one.User)); END IF;
  END FOR;
END //
DELIMITER ;
`;
}

/** Consumers of the performance schema that are on by default: 98 MB. */
const leftOut = [
  "accounts-size",
  "hosts-size",
  "users-size",
  "session-connect-attrs-size",
  ...["stages", "statements", "transactions", "waits"].flatMap((kind) => [
    `events-${kind}-history-size`,
    `events-${kind}-history-long-size`,
  ]),
  ...["cond", "file", "mutex", "rwlock", "socket"].flatMap((kind) => [
    `max-${kind}-classes`,
    `max-${kind}-instances`,
  ]),
  "max-index-stat",
  "max-memory-classes",
  "max-metadata-locks",
  "max-prepared-statements-instances",
  "max-program-instances",
  "max-stage-classes",
  "max-table-handles",
  "max-table-instances",
];
/** Statement statistics only: 14 MB. */
const statementStatistics = {
  "performance-schema": "ON",
  "performance-schema-digests-size": "200",
  "performance-schema-max-statement-stack": "1",
  ...Object.fromEntries(leftOut.map((name) => [`performance-schema-${name}`, "0"])),
};

/**
 * MariaDB requires TLS of all clients or of none. So each session's init command ends it unless it uses TLS or comes
 * from the account's network, before any statement of its own. Only administrators are exempt, and no customer is
 * one.
 */
function refuseUncovered(subnet: string): string {
  const [network, prefix] = subnet.split("/");
  const mask = 2 ** 32 - 2 ** (32 - Number(prefix));
  const from = "INET_ATON(SUBSTRING_INDEX(USER(), '@', -1))";
  // The session's own status is not available this early.
  const covered =
    "EXISTS (SELECT 1 FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID() AND CONNECTION_TYPE = 'SSL/TLS')";
  return (
    `BEGIN NOT ATOMIC IF NOT COALESCE(${from} & ${mask} = INET_ATON('${network}'), FALSE) THEN ` +
    `IF NOT ${covered} THEN SIGNAL SQLSTATE '08004' SET MESSAGE_TEXT = 'Connect with TLS'; END IF; END IF; END`
  );
}

/**
 * Returns the memory of large rows to the system at once: by default the allocator comes to keep up to 32 MB of each.
 */
export const givesBack = "MALLOC_MMAP_THRESHOLD_=1048576";

export const mysql: DatabaseEngine = {
  dataPath: "/var/lib/mysql",
  dataFiles: ["aria_log_control"],
  env: ({ databaseName, adminPassword }) => [
    `MARIADB_ROOT_PASSWORD=${adminPassword}`,
    "MARIADB_ROOT_HOST=localhost",
    `MARIADB_DATABASE=${databaseName}`,
    givesBack,
  ],
  command(limits) {
    const { memoryMb } = limits;
    const poolMb = Math.floor(memoryMb * 0.4);
    const connections = maxConnections(limits) + ownConnections;
    // The server holds a row several times over: larger ones would run it out of memory.
    const packetMb = Math.min(128, Math.max(32, Math.floor(memoryMb / 16)));
    const settings = {
      "innodb-buffer-pool-size": `${poolMb}M`,
      "innodb-log-file-size": `${Math.min(512, Math.max(32, Math.floor(poolMb / 4)))}M`,
      "max-connections": String(connections),
      "aria-pagecache-buffer-size": `${Math.max(8, Math.floor(memoryMb / 32))}M`,
      "key-buffer-size": "8M",
      "tmp-table-size": `${Math.max(8, Math.floor(memoryMb / 64))}M`,
      "max-heap-table-size": `${Math.max(8, Math.floor(memoryMb / 64))}M`,
      ...statementStatistics,
      // The connections and the server's own threads.
      "performance-schema-max-thread-instances": String(connections + 48),
      "max-allowed-packet": `${packetMb}M`,
      // Off by default; the database's owner created its events.
      "event-scheduler": "ON",
      "character-set-server": "utf8mb4",
      "bind-address": "0.0.0.0",
    };
    return [
      "mariadbd",
      "--skip-name-resolve",
      ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
    ];
  },
  guarded: (subnet) => [
    `--ssl-cert=${certificateFile}`,
    `--ssl-key=${keyFile}`,
    `--init-connect=${refuseUncovered(subnet)}`,
  ],
  tlsPort: 3306,
  users: ["mysql"],
  renew: async ({ adminPassword }, run) => void (await run(mariadb(adminPassword, "FLUSH SSL"))),
  stopSignal: "SIGTERM",
  // The initializing server listens on the socket as well, but not on the network.
  ready: { program: ({ adminPassword }) => mariadb(adminPassword, "SELECT @@skip_networking"), says: "0" },
  arrange: async (spec, run) => void (await run(mariadb(spec.adminPassword, arrangement(spec)))),
  limitWrites: {
    envName: "MARIADB_DATABASE",
    program: (held, writes) => mariadb(held.adminPassword, writesOf(held, writes)),
  },
  version: ({ adminPassword }, run) => run(mariadb(adminPassword, "SELECT VERSION()")),
};
