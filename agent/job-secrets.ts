import type { DatabaseSpec, Job, JobArgs, JobKind, RunSpec } from "../protocol/agent/jobs.ts";
import { gitSecrets } from "../protocol/git-token.ts";

const none = (): string[] => [];
const ofRun = ({ run }: { run: RunSpec }): string[] =>
  run.env.filter(({ secret }) => secret).map(({ value }) => value);
const ofDatabase = ({ database }: { database: DatabaseSpec }): string[] => [
  database.adminPassword,
  ...database.logins.map(({ password }) => password),
];

function ofSource({ source }: JobArgs<"site.deploy">): string[] {
  const made = source.type === "kept" ? source.otherwise : source;
  if (made?.type === "git" && made.token !== null) return gitSecrets(made.token);
  return made?.type === "image" && made.login !== null ? [made.login.password] : [];
}

/** Values that must not appear in a job's log or error. Exhaustive: a kind without an entry does not compile. */
const secrets: { [K in JobKind]: (args: JobArgs<K>) => string[] } = {
  "site.deploy": (args) => [...ofRun(args), ...ofSource(args)],
  "site.start": ofRun,
  "site.stop": none,
  "site.restart": ofRun,
  "site.route": none,
  "site.delete": none,
  "site.evict": none,
  "site.command": ofRun,
  "database.provision": ofDatabase,
  "database.start": ofDatabase,
  "database.restart": ofDatabase,
  "database.stop": none,
  "database.rotate": ofDatabase,
  "database.expose": ofDatabase,
  "database.delete": none,
  "database.backup": ofDatabase,
  "database.verify": ({ like }) => [like.adminPassword],
  "database.restore": ofDatabase,
};

export const secretsOf = <K extends JobKind>(job: Job<K>): string[] =>
  (secrets[job.kind] as (args: JobArgs<K>) => string[])(job.args);
