import {
  DatabaseLinkCreate,
  type Database,
  type DatabaseCredentials,
} from "../../../protocol/api/databases.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import type { DatabaseType } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { Act, Field, Form, Select, Submit } from "../kit/form.tsx";
import { sitesOf } from "../kit/paging.ts";
import { Callout, Card, Code, Copied } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseFrame, databasePath, openDatabase, told, type Told } from "./frame.tsx";

const hidden = "••••••••";

const snippets: Record<DatabaseType, readonly (readonly [language: string, code: string])[]> = {
  postgresql: [
    [
      "Node.js",
      'import pg from "pg";\nconst pool = new pg.Pool({ connectionString: process.env.$VARIABLE });\nconst { rows } = await pool.query("SELECT now()");',
    ],
    [
      "Python",
      'import os, psycopg\nwith psycopg.connect(os.environ["$VARIABLE"]) as connection:\n    print(connection.execute("SELECT now()").fetchone())',
    ],
    [
      "Ruby",
      'require "pg"\nconnection = PG.connect(ENV.fetch("$VARIABLE"))\nputs connection.exec("SELECT now()").first',
    ],
    ["Go", 'db, err := sql.Open("pgx", os.Getenv("$VARIABLE")) // github.com/jackc/pgx/v5/stdlib'],
    [
      "PHP",
      "$parts = parse_url(getenv('$VARIABLE'));\n$db = new PDO(\"pgsql:host={$parts['host']};dbname=\" . ltrim($parts['path'], '/'),\n    $parts['user'], urldecode($parts['pass']));",
    ],
  ],
  mysql: [
    [
      "Node.js",
      'import mysql from "mysql2/promise";\nconst connection = await mysql.createConnection(process.env.$VARIABLE);\nconst [rows] = await connection.query("SELECT now()");',
    ],
    [
      "Python",
      'import os\nfrom sqlalchemy import create_engine, text\nengine = create_engine(os.environ["$VARIABLE"].replace("mysql://", "mysql+pymysql://", 1))\nwith engine.connect() as connection:\n    print(connection.execute(text("SELECT now()")).scalar())',
    ],
    [
      "Ruby",
      'require "mysql2"\nrequire "uri"\nat = URI(ENV.fetch("$VARIABLE"))\nclient = Mysql2::Client.new(host: at.host, username: at.user,\n  password: URI.decode_uri_component(at.password), database: at.path.delete_prefix("/"))',
    ],
    [
      "PHP",
      "$parts = parse_url(getenv('$VARIABLE'));\n$db = new PDO(\"mysql:host={$parts['host']};dbname=\" . ltrim($parts['path'], '/'),\n    $parts['user'], urldecode($parts['pass']));",
    ],
  ],
  redis: [
    [
      "Node.js",
      'import { createClient } from "redis";\nconst client = await createClient({ url: process.env.$VARIABLE }).connect();\nawait client.set("greeting", "hello");',
    ],
    [
      "Python",
      'import os, redis\nclient = redis.from_url(os.environ["$VARIABLE"])\nclient.set("greeting", "hello")',
    ],
    [
      "Ruby",
      'require "redis"\nclient = Redis.new(url: ENV.fetch("$VARIABLE"))\nclient.set("greeting", "hello")',
    ],
    [
      "Go",
      'options, err := redis.ParseURL(os.Getenv("$VARIABLE"))\nclient := redis.NewClient(options) // github.com/redis/go-redis/v9',
    ],
  ],
};

const masked = ({ type, username, host, port, databaseName }: Database): string =>
  `${databaseEngines[type].scheme}://${username}:${hidden}@${host}:${port}/${databaseName ?? "0"}`;

const Addresses = ({
  database,
  revealed,
}: {
  database: Database;
  revealed: Told<DatabaseCredentials> | null;
}) => {
  const seen = revealed && "value" in revealed ? revealed.value : null;
  const string = seen?.connectionString ?? masked(database);
  return (
    <>
      <dl>
        <dt>Connection string</dt>
        <dd>{seen ? <Copied text={string} of="connection string" /> : <code>{string}</code>}</dd>
        <dt>Host</dt>
        <dd>
          <Copied text={database.host} of="host" />
        </dd>
        <dt>Port</dt>
        <dd>
          <code>{database.port}</code>
        </dd>
        {database.databaseName !== null && (
          <>
            <dt>Database</dt>
            <dd>
              <Copied text={database.databaseName} of="database" />
            </dd>
          </>
        )}
        <dt>User</dt>
        <dd>
          <Copied text={database.username} of="user" />
        </dd>
        <dt>Password</dt>
        <dd>{seen ? <Copied text={seen.password} of="password" /> : <code>{hidden}</code>}</dd>
        {seen?.publicAccess && (
          <>
            <dt>From outside</dt>
            <dd>
              <Copied text={seen.publicAccess.connectionString} of="public connection string" />
            </dd>
          </>
        )}
      </dl>
      <div class="body">
        {revealed && !("value" in revealed) && <p class="soft">{revealed.reason}</p>}
        <p class="soft">
          Your sites on the same host reach it at this address.{" "}
          {database.publicAccess.enabled ? (
            "The public address works only from the listed networks."
          ) : (
            <>
              From your computer it is reached through the command line; from anywhere else only once you
              allow it under <a href={databasePath(database.id, "access")}>Access</a>.
            </>
          )}
        </p>
        <p class="form-end">
          {seen ? (
            <a class="button" href={databasePath(database.id, "connect")}>
              Hide the password
            </a>
          ) : (
            <a class="button" href={`${databasePath(database.id, "connect")}?reveal=1`}>
              Reveal the password
            </a>
          )}
        </p>
      </div>
    </>
  );
};

const Links = ({ database, sites }: { database: Database; sites: readonly Site[] }) => {
  const nameOf = (id: string) => sites.find((site) => site.id === id)?.name ?? "a site";
  const free = sites.filter(({ id }) => !database.links.some(({ siteId }) => siteId === id));
  return (
    <>
      {database.links.length === 0 ? (
        <p class="body soft">No site uses it yet. A linked site gets the address as a secret variable.</p>
      ) : (
        <table>
          {database.links.map(({ siteId, variable }) => (
            <tr>
              <td>
                <a href={`/sites/${siteId}`}>{nameOf(siteId)}</a>
              </td>
              <td>
                <code>{variable}</code>
              </td>
              <td class="end">
                <Act
                  id="unlink"
                  of={siteId}
                  label="Unlink"
                  about={nameOf(siteId)}
                  kind="danger"
                  values={{ siteId }}
                />
              </td>
            </tr>
          ))}
        </table>
      )}
      {free.length > 0 && (
        <div class="body">
          <Form id="link">
            <Select
              name="siteId"
              label="Site"
              value={free[0]?.id}
              options={free.map(({ id, name }) => [id, name] as const)}
            />
            <Field
              name="variable"
              label="Variable"
              placeholder={databaseEngines[database.type].variable}
              hint="The site receives it at its next restart or deployment."
              maxlength={100}
              mono
            />
            <Submit label="Link the site" />
          </Form>
        </div>
      )}
    </>
  );
};

const clients: Record<DatabaseType, string> = { postgresql: "psql", mysql: "mariadb", redis: "redis-cli" };

/** What the command line does with it, a dump to import included. */
const FromComputer = ({ database, siteUrl }: { database: Database; siteUrl: string }) => {
  const connect = `berth databases connect ${database.name}`;
  const code = [
    `curl -fsSL ${siteUrl}/install/cli | sh`,
    `berth login ${siteUrl}`,
    connect,
    ...(database.type === "redis" ? [] : [`${connect} < dump.sql  # imports it`]),
    `berth databases tunnel ${database.name}  # for other programs`,
  ].join("\n");
  return (
    <div class="body">
      <p>
        The command line connects through this service with your key, using{" "}
        <code>{clients[database.type]}</code> if it is installed
        {database.type === "redis" ? "." : ", as it must be to import a dump."}
        {database.type === "postgresql" && (
          <>
            {" "}
            A dump that is not SQL is imported by <code>pg_restore</code> through the tunnel. One from
            elsewhere names roles that this server lacks: leave them out with{" "}
            <code>--no-owner --no-acl --no-comments</code>, of <code>pg_restore</code> or of{" "}
            <code>pg_dump</code>.
          </>
        )}
        {database.type === "mysql" && (
          <>
            {" "}
            Dump MySQL with <code>--set-gtid-purged=OFF</code>. This server is MariaDB: in such a dump, write{" "}
            <code>utf8mb4_uca1400_nopad_ai_ci</code> for <code>utf8mb4_0900_ai_ci</code>, and leave out each{" "}
            <code>DEFINER=…</code>.
          </>
        )}
      </p>
      <Code text={code} of="commands" />
    </div>
  );
};

const Rotation = ({ database, sites }: { database: Database; sites: readonly Site[] }) =>
  database.rotating ? (
    <div class="body">
      <Callout tone="busy" title="A new password is being rolled out">
        <ol class="numbered">
          <li>The server accepts the new user and password alongside the old ones.</li>
          <li>
            {database.links.length === 0
              ? "No site is linked, so none restarts."
              : `Linked sites restart with the new ones, one by one: ${database.links
                  .map(({ siteId }) => sites.find(({ id }) => id === siteId)?.name ?? siteId)
                  .join(", ")}.`}
          </li>
          <li>Once no site uses the old ones, they are removed.</li>
        </ol>
      </Callout>
    </div>
  ) : (
    <div class="body">
      <p>
        A new user and password are made. Linked sites restart with them one by one, without an interruption;
        then the old ones stop working. Give programs elsewhere the new ones yourself.
      </p>
      <div class="form-end">
        <Act id="rotate" label="Rotate the password" about={database.name} />
      </div>
    </div>
  );

export const databaseConnect: Screen = {
  path: "/databases/:id/connect",
  async show({ ctx, param, query }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const [sites, revealed] = await Promise.all([
      sitesOf(ctx),
      query("reveal") === "1" ? told(call(ctx, "getDatabaseCredentials", { id: database.id })) : null,
    ]);
    const variable = database.links[0]?.variable ?? databaseEngines[database.type].variable;
    return databaseFrame(
      opened,
      "connect",
      <div class="halves">
        <div class="stack">
          <Card title="Sites that use it">
            <Links database={database} sites={sites} />
          </Card>
          <Card title="Address and password" id="addresses" live>
            <Addresses database={database} revealed={revealed} />
          </Card>
        </div>
        <div class="stack">
          <Card title="From your computer">
            <FromComputer database={database} siteUrl={ctx.config.SITE_URL} />
          </Card>
          <Card title="In a program">
            <div class="body">
              {snippets[database.type].map(([language, code], index) => {
                const text = code.replaceAll("$VARIABLE", variable);
                return (
                  <details class="fold" open={index === 0}>
                    <summary>{language}</summary>
                    <Code text={text} of={language} />
                  </details>
                );
              })}
            </div>
          </Card>
          <Card title="Change the password" id="rotation" live>
            <Rotation database={database} sites={sites} />
          </Card>
        </div>
      </div>,
    );
  },
  forms: {
    async link({ ctx, param }, fields) {
      const { siteId, restartRequired, variable } = await call(ctx, "linkDatabase", {
        id: param("id"),
        ...fields.read(DatabaseLinkCreate),
      });
      // By its name: the button to restart on this page is the database's.
      const { name } = await call(ctx, "getSite", { id: siteId });
      return {
        to: databasePath(param("id"), "connect"),
        said: `${name} gets the variable ${variable} at its next ${restartRequired ? "restart or deployment" : "deployment"}.`,
      };
    },
    async unlink({ ctx, param }, fields) {
      await call(ctx, "unlinkDatabase", { id: param("id"), siteId: fields.text("siteId") });
      return {
        to: databasePath(param("id"), "connect"),
        said: "The link is removed. The site loses the variable at its next restart or deployment.",
      };
    },
    async rotate({ ctx, param }) {
      await call(ctx, "rotateDatabase", { id: param("id") });
      return { to: databasePath(param("id"), "connect"), said: "A new password is being created." };
    },
  },
};
