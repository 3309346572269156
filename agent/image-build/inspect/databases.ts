import type { DatabaseType } from "../../../protocol/states.ts";
import { manifestText, pythonManifests } from "../detect/requirements.ts";
import type { Sources } from "../detect/sources.ts";

/** In an address or a variable of an example, and among the packages that a manifest names. */
const signs: Record<DatabaseType, { example: RegExp; dependency: RegExp }> = {
  postgresql: {
    example:
      /\bpostgres(?:ql)?(?:\+\w+)?:\/\/|\b(?:POSTGRES|PG)_?(?:URL|HOST|USER|DB|DATABASE)\b|provider\s*=\s*"postgresql"|^DB_CONNECTION=pgsql/im,
    dependency:
      /"(?:pg|postgres|postgres\.js|@neondatabase\/serverless|@vercel\/postgres)"\s*:|^[ \t"']*(?:psycopg(?:2(?:-binary)?)?|asyncpg|pg8000)\b|gem ["']pg["']|github\.com\/(?:lib\/pq|jackc\/pgx)|"ext-(?:pdo_)?pgsql"/im,
  },
  mysql: {
    example:
      /\b(?:mysql2?|mariadb)(?:\+\w+)?:\/\/|\bMYSQL_?(?:URL|HOST|USER|DATABASE)\b|provider\s*=\s*"mysql"|^DB_CONNECTION=(?:mysql|mariadb)/im,
    dependency:
      /"(?:mysql2?|mariadb)"\s*:|^[ \t"']*(?:mysqlclient|pymysql|aiomysql|mysql-connector-python)\b|gem ["'](?:mysql2|trilogy)["']|github\.com\/go-sql-driver\/mysql|"ext-(?:mysqli|pdo_mysql)"/im,
  },
  redis: {
    example: /\brediss?:\/\/|\bREDIS_?(?:URL|HOST|URI|TLS_URL)\b/i,
    dependency:
      /"(?:redis|ioredis|bull|bullmq|connect-redis|@node-redis\/client|predis\/predis|ext-redis)"\s*:|^[ \t"']*(?:redis|rq|arq|django-redis)\b(?=[\s"'[<>=~!;,]|$)|gem ["'](?:redis|sidekiq|resque)["']|github\.com\/(?:redis\/go-redis|go-redis\/redis|gomodule\/redigo)/im,
  },
};
const others: [name: string, sign: RegExp][] = [
  [
    "MongoDB",
    /\bmongodb(?:\+srv)?:\/\/|\bMONGO(?:DB)?_?(?:URL|URI)\b|"(?:mongodb|mongoose)"\s*:|\bpymongo\b|gem ["']mongoid["']/i,
  ],
  ["Elasticsearch", /\bELASTIC(?:SEARCH)?_?(?:URL|HOST|NODE)\b|"@elastic\/elasticsearch"\s*:/i],
  ["Kafka", /\bKAFKA_?(?:URL|BROKERS?|BOOTSTRAP_SERVERS)\b|"kafkajs"\s*:/i],
  ["RabbitMQ", /\bamqps?:\/\/|"amqplib"\s*:/i],
];
const manifests = ["package.json", ...pythonManifests, "Gemfile", "go.mod", "composer.json"];

const manifestsOf = (sources: Sources): string[] => manifests.map((file) => manifestText(sources, file));

/** The databases of Berth's that an app appears to connect to. */
export function databasesOf(sources: Sources, examples: readonly string[]): DatabaseType[] {
  const named = manifestsOf(sources);
  return (Object.keys(signs) as DatabaseType[]).filter((type) => {
    const { example, dependency } = signs[type];
    return examples.some((text) => example.test(text)) || named.some((text) => dependency.test(text));
  });
}

/** A server that it appears to need, and that is to be had elsewhere. */
export function lackingDatabase(sources: Sources, examples: readonly string[]): string[] {
  const texts = [...manifestsOf(sources), ...examples];
  return others
    .filter(([, sign]) => texts.some((text) => sign.test(text)))
    .map(
      ([name]) =>
        `It appears to use ${name}, which is not offered here: use a server elsewhere, and set its address in a variable.`,
    );
}
