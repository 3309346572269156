import { randomBytes } from "node:crypto";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import {
  certificateFile,
  keyFile,
  maxConnections,
  tlsFolder,
  type DatabaseEngine,
  type Held,
  type Run,
  type Writes,
} from "../database-engine.ts";
import { scramVerifier } from "../verifiers.ts";

/** Berth's own superuser; customers' logins are not superusers. It must never run code of the owner's. */
const admin = "berth";
/**
 * Berth's own roles, which may read everything in the database and nothing else, because they may run code of the
 * owner's. The first signs in over the socket only; the second gets a password from the agent.
 */
export const backupReader = "berth_backup";
export const queryReader = "berth_query";

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Over the container's own socket, which the image trusts: nobody else has a shell in there. */
export const psqlCommand = (database: string, username: string) => [
  "psql",
  "--no-psqlrc",
  "--quiet",
  "--tuples-only",
  "--no-align",
  "--set=ON_ERROR_STOP=1",
  `--username=${username}`,
  `--dbname=${database}`,
];
/**
 * Options for Berth's own sessions: objects of the owner must not shadow built-in functions and types, and the
 * owner's settings must not apply.
 */
const ownOptions = Object.entries({
  search_path: "pg_catalog,pg_temp",
  default_transaction_read_only: "off",
  role: "none",
  statement_timeout: "0",
  lock_timeout: "0",
  idle_session_timeout: "0",
  idle_in_transaction_session_timeout: "0",
  standard_conforming_strings: "on",
  quote_all_identifiers: "off",
  // A library that is not there refuses every connection.
  local_preload_libraries: "",
})
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(" ");
export const ownEnvironment = [`PGOPTIONS=${ownOptions}`, "PGCLIENTENCODING=UTF8"];
const psql = (database: string, input: string) => ({
  command: psqlCommand(database, admin),
  env: ownEnvironment,
  input,
});

/** Creates the roles if they are missing, also in existing databases, and leaves correct ones untouched. */
const arrangeReaders = (databaseName: string): string => `
SET client_min_messages = warning;
DO $berth$ DECLARE reader name; BEGIN
  FOREACH reader IN ARRAY ARRAY[${literal(backupReader)}, ${literal(queryReader)}]::name[] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = reader AND rolcanlogin AND rolbypassrls) THEN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = reader) THEN EXECUTE format('CREATE ROLE %I', reader); END IF;
      EXECUTE format('ALTER ROLE %I LOGIN BYPASSRLS', reader);
      EXECUTE format('ALTER ROLE %I SET lo_compat_privileges = on', reader);
    END IF;
    IF NOT pg_has_role(reader, 'pg_read_all_data', 'USAGE') THEN EXECUTE format('GRANT pg_read_all_data TO %I', reader); END IF;
    IF NOT has_database_privilege(reader, ${literal(databaseName)}, 'CONNECT') THEN
      EXECUTE format('GRANT CONNECT ON DATABASE ${identifier(databaseName)} TO %I', reader);
    END IF;
  END LOOP;
  -- Older servers do not know the setting, which therefore cannot be among the options of a session.
  FOREACH reader IN ARRAY ARRAY[${literal(admin)}, ${literal(backupReader)}, ${literal(queryReader)}]::name[] LOOP
    IF current_setting('transaction_timeout', true) IS NOT NULL AND NOT EXISTS (SELECT FROM pg_roles
        WHERE rolname = reader AND 'transaction_timeout=0' = ANY (rolconfig)) THEN
      EXECUTE format('ALTER ROLE %I SET transaction_timeout = 0', reader);
    END IF;
  END LOOP;
  -- It would keep out the readers. Each login has a limit of its own.
  IF EXISTS (SELECT FROM pg_database WHERE datname = ${literal(databaseName)} AND datconnlimit >= 0) THEN
    ALTER DATABASE ${identifier(databaseName)} CONNECTION LIMIT -1;
  END IF;
  IF EXISTS (SELECT FROM pg_authid WHERE rolname = ${literal(admin)} AND rolpassword IS NOT NULL) THEN ALTER ROLE ${admin} PASSWORD NULL; END IF;
  -- A restore by the owner may not comment on Berth's own extension, which may have been dropped with its schema.
  IF EXISTS (SELECT FROM pg_extension e JOIN pg_description d ON d.objoid = e.oid AND d.classoid = 'pg_extension'::regclass
      WHERE e.extname = 'pg_stat_statements') THEN COMMENT ON EXTENSION pg_stat_statements IS NULL; END IF;
END $berth$;
`;

/** For a database with objects of its own under the extension's names. */
export const dropStatistics = async (databaseName: string, run: Run): Promise<void> =>
  void (await run(psql(databaseName, "DROP EXTENSION IF EXISTS pg_stat_statements")));

/** Creates a role that has no rights and cannot sign in. */
export const createRole = async (name: string, run: Run): Promise<void> =>
  void (await run(psql("postgres", `CREATE ROLE ${identifier(name)}`)));

/** Renames the role that owns everything in the database. */
export const renameOwner = async (databaseName: string, from: string, to: string, run: Run): Promise<void> =>
  void (await run(psql(databaseName, `ALTER ROLE ${identifier(from)} RENAME TO ${identifier(to)}`)));

/** Replaces the database by an empty one, which then has to be arranged. @param from a name that its owner may still have */
export const emptyDatabase = async (databaseName: string, from: string, run: Run): Promise<void> => {
  const [name, other] = [identifier(databaseName), identifier(from)];
  const isRenamed = `EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(from)})`;
  const rename = `DO $berth$ BEGIN IF ${isRenamed} THEN ALTER ROLE ${other} RENAME TO ${name}; END IF; END $berth$;`;
  const statements = [
    `DROP DATABASE ${name} WITH (FORCE);`,
    ...(from === databaseName ? [] : [rename]),
    `CREATE DATABASE ${name};`,
  ];
  await run(psql("postgres", statements.join("\n")));
};

/** Ensures that Berth's readers can read this database. */
export const ensureReaders = async (databaseName: string, run: Run): Promise<void> =>
  void (await run(psql(databaseName, arrangeReaders(databaseName))));

/** The same, and sets the password of the query reader. */
export const ensureQueryReader = async (databaseName: string, password: string, run: Run): Promise<void> =>
  void (await run(
    psql(
      databaseName,
      `${arrangeReaders(databaseName)}ALTER ROLE ${queryReader} PASSWORD ${literal(scramVerifier(password, randomBytes(16)))};`,
    ),
  ));

/**
 * A role named after the database owns it and everything in it. Logins are members that act as this role, so that
 * their objects outlast them. Exactly the valid logins are members. Former logins are locked out first and committed
 * separately, because others may lock their objects, and those locks are not waited for.
 */
function arrangement({ databaseName, logins, limits }: DatabaseSpec): string {
  const owner = identifier(databaseName);
  const names = logins.map(({ username }) => literal(username)).join(", ");
  const eachGone = `FOR gone IN SELECT m.rolname FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member JOIN pg_roles o ON o.oid = a.roleid
    WHERE o.rolname = ${literal(databaseName)} AND m.rolname <> ${literal(admin)} AND m.rolname NOT IN (${names})`;
  return `
SET client_min_messages = warning;
SET lock_timeout = '5s';
SET statement_timeout = '60s';
DO $berth$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(databaseName)}) THEN CREATE ROLE ${owner} NOLOGIN; END IF;
END $berth$;
ALTER DATABASE ${owner} OWNER TO ${owner};
REVOKE ALL ON DATABASE ${owner}, postgres, template1 FROM PUBLIC;
DO $berth$ BEGIN
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'public') THEN
    ALTER SCHEMA public OWNER TO ${owner};
    BEGIN
      CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public;
    EXCEPTION WHEN OTHERS THEN
      -- An object of the owner's has one of its names: only slow statements are unavailable.
    END;
  END IF;
END $berth$;
${arrangeReaders(databaseName)}
${logins
  .map(
    ({ username, password }) => `
DO $berth$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(username)}) THEN CREATE ROLE ${identifier(username)}; END IF;
END $berth$;
ALTER ROLE ${identifier(username)} LOGIN INHERIT CONNECTION LIMIT ${maxConnections(limits)} PASSWORD ${literal(scramVerifier(password, randomBytes(16)))};
GRANT ${owner} TO ${identifier(username)};
ALTER ROLE ${identifier(username)} SET role = ${literal(databaseName)};
ALTER ROLE ${identifier(username)} IN DATABASE ${owner} RESET default_transaction_read_only;`,
  )
  .join("\n")}
DO $berth$ DECLARE gone name; BEGIN
  ${eachGone} LOOP
    EXECUTE format('ALTER ROLE %I NOLOGIN', gone);
  END LOOP;
END $berth$;
DO $berth$ DECLARE gone name; BEGIN
  ${eachGone} LOOP
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = gone;
    EXECUTE format('REASSIGN OWNED BY %I TO ${owner}', gone);
    EXECUTE format('DROP OWNED BY %I', gone);
    EXECUTE format('DROP ROLE %I', gone);
  END LOOP;
END $berth$;
`;
}

/**
 * A session may still run `SET default_transaction_read_only = off`, which its owner needs to delete and vacuum. If
 * the database keeps growing, its logins are locked out.
 */
function writesOf({ databaseName }: Held, writes: Writes): string {
  const [login, readOnly, isSo] = {
    all: ["LOGIN", "RESET default_transaction_read_only", "false"],
    less: ["LOGIN", "SET default_transaction_read_only = on", isReadOnly],
    none: ["NOLOGIN", "SET default_transaction_read_only = on", "NOT m.rolcanlogin"],
  }[writes];
  return `
DO $berth$ DECLARE login name; BEGIN
  FOR login IN SELECT m.rolname FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member JOIN pg_roles o ON o.oid = a.roleid
    WHERE o.rolname = ${literal(databaseName)} AND m.rolname <> ${literal(admin)} AND NOT (${isSo})
  LOOP
    EXECUTE format('ALTER ROLE %I ${login}', login);
    EXECUTE format('ALTER ROLE %I IN DATABASE ${identifier(databaseName)} ${readOnly}', login);
    ${writes === "all" ? "" : "PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = login;"}
  END LOOP;
END $berth$;
`;
}
const isReadOnly = `EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
  WHERE s.setrole = m.oid AND d.datname = current_database() AND 'default_transaction_read_only=on' = ANY (s.setconfig))`;

/** Beside the owner's: three that PostgreSQL reserves for superusers, two for a backup, four for questions. */
const ownConnections = 9;
/**
 * The number of tables, indexes and sequences that a dump may lock at once: each takes 300 bytes of memory, used or
 * not.
 */
const relationsMax = 25_000;

const accessFile = "pg_hba.conf";
const optionsOf = (settings: Record<string, string>): string[] =>
  Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);

export const postgresql: DatabaseEngine = {
  dataPath: "/var/lib/postgresql/data",
  dataFiles: ["PG_VERSION"],
  socketFolder: "/var/run/postgresql",
  env: ({ databaseName, adminPassword }) => [
    `POSTGRES_USER=${admin}`,
    `POSTGRES_PASSWORD=${adminPassword}`,
    `POSTGRES_DB=${databaseName}`,
    "POSTGRES_INITDB_ARGS=--data-checksums",
  ],
  command(limits) {
    const { memoryMb } = limits;
    const connections = maxConnections(limits);
    const sharedMb = Math.floor(memoryMb / 4);
    const settings = {
      shared_buffers: `${sharedMb}MB`,
      effective_cache_size: `${Math.floor(memoryMb * 0.6)}MB`,
      // Of the remaining memory, a sort may use half a connection's share.
      work_mem: `${Math.max(1024, Math.floor(((memoryMb - sharedMb) * 1024) / (connections * 2)))}kB`,
      maintenance_work_mem: `${Math.max(16, Math.floor(memoryMb / 16))}MB`,
      max_connections: String(connections + ownConnections),
      max_locks_per_transaction: String(Math.ceil(relationsMax / (connections + ownConnections))),
      max_wal_size: `${Math.min(4096, Math.max(256, memoryMb))}MB`,
      shared_preload_libraries: "pg_stat_statements",
      listen_addresses: "*",
    };
    return ["postgres", ...optionsOf(settings)];
  },
  guarded: () =>
    optionsOf({
      ssl: "on",
      ssl_cert_file: certificateFile,
      ssl_key_file: keyFile,
      hba_file: `${tlsFolder}/${accessFile}`,
    }),
  tlsPort: 5432,
  users: ["postgres"],
  // The account's network, the agent on its gateway, and over TLS everyone whom the firewall admits.
  accessFile: {
    name: accessFile,
    text: [
      "local all all trust",
      "host all all samenet scram-sha-256",
      "hostssl all all all scram-sha-256",
      "",
    ].join("\n"),
  },
  renew: async ({ databaseName }, run) => void (await run(psql(databaseName, "SELECT pg_reload_conf()"))),
  // Fast shutdown: disconnects clients and writes a checkpoint.
  stopSignal: "SIGINT",
  ready: { program: () => ({ command: ["pg_isready", "--quiet", "--host=127.0.0.1", "--timeout=2"] }) },
  arrange: async (spec, run) => void (await run(psql(spec.databaseName, arrangement(spec)))),
  limitWrites: {
    envName: "POSTGRES_DB",
    program: (held, writes) => psql(held.databaseName, writesOf(held, writes)),
  },
  version: ({ databaseName }, run) => run(psql(databaseName, "SHOW server_version")),
};
