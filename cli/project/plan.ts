import { isDeepStrictEqual } from "node:util";
import type { Answer, ProjectFile } from "../../client/index.ts";

type Site = Answer<"listSites">["data"][number];
type Database = Answer<"getDatabase">;
type Schedule = Answer<"listSchedules">["data"][number];
/** What the account has. `site` is null until it is created. */
export type Actual = { site: Site | null; databases: Database[]; schedules: Schedule[] };

type Wanted<Name extends "databases" | "schedules"> = NonNullable<ProjectFile[Name]>[number];
/** One step from what is to what berth.json says. `before` and `after` are texts for people. */
export type Step =
  | { kind: "createSite"; name: string }
  | { kind: "setting"; name: string; before: unknown; after: unknown }
  | { kind: "variable"; name: string; before: string | null; after: string }
  | { kind: "domain"; name: string }
  | { kind: "createDatabase"; database: Wanted<"databases"> }
  | { kind: "linkDatabase"; database: Wanted<"databases">; variable: string }
  | { kind: "createSchedule"; schedule: Wanted<"schedules"> }
  | {
      kind: "changeSchedule";
      id: string;
      schedule: Wanted<"schedules">;
      changes: Partial<Wanted<"schedules">>;
    }
  /** Only with --prune: what the site has and its list in the file does not. */
  | { kind: "removeVariable"; name: string }
  | { kind: "removeDomain"; name: string }
  | { kind: "removeSchedule"; name: string; id: string };
type Removal = Extract<Step, { kind: `remove${string}` }>;
export const isRemoval = (step: Step): step is Removal => step.kind.startsWith("remove");

const variableOf = ({ type, variable }: Wanted<"databases">): string =>
  variable ?? (type === "redis" ? "REDIS_URL" : "DATABASE_URL");

/** Settings of the file, with those of its source. `repository`: of the checkout, for files that name none. */
export function settingsOf({ source, settings }: ProjectFile): Record<string, unknown> {
  const { repository, ...rest } = source ?? {};
  return { ...(repository !== undefined && { githubUrl: repository }), ...rest, ...settings };
}

/** All steps, in the order in which they are taken. Applying them all leaves none. */
export function planOf(file: ProjectFile, { site, databases, schedules }: Actual): Step[] {
  const steps: Step[] = site === null ? [{ kind: "createSite", name: file.name }] : [];
  const domains = new Map(
    (site?.domains ?? []).flatMap((one) => [
      [one.domain, one],
      [one.displayName, one],
    ]),
  );
  // A new site is created with its settings.
  if (site !== null)
    for (const [name, after] of Object.entries(settingsOf(file))) {
      const before = site[name as keyof Site] ?? null;
      if (after !== undefined && !isDeepStrictEqual(before, after))
        steps.push({ kind: "setting", name, before, after });
    }
  const variables = new Map(site?.envVariables.map((one) => [one.key, one]));
  for (const [name, after] of Object.entries(file.variables ?? {})) {
    const before = variables.get(name);
    if (before?.value !== after) steps.push({ kind: "variable", name, before: before?.value ?? null, after });
  }
  for (const database of file.databases ?? []) {
    const existing = databases.find(({ name }) => name === database.name);
    const variable = variableOf(database);
    if (!existing) steps.push({ kind: "createDatabase", database });
    const isLinked = existing?.links.some((one) => one.siteId === site?.id && one.variable === variable);
    if (!isLinked) steps.push({ kind: "linkDatabase", database, variable });
  }
  for (const name of file.domains ?? [])
    if (!domains.has(name.toLowerCase())) steps.push({ kind: "domain", name });
  for (const schedule of file.schedules ?? []) {
    const existing = schedules.find(({ name }) => name === schedule.name);
    if (!existing) {
      steps.push({ kind: "createSchedule", schedule });
      continue;
    }
    const changes = Object.fromEntries(
      Object.entries(schedule).filter(([name, value]) => existing[name as keyof Schedule] !== value),
    );
    if (Object.keys(changes).length > 0)
      steps.push({ kind: "changeSchedule", id: existing.id, schedule, changes });
  }
  return [...steps, ...removalsOf(file, { site, databases, schedules })];
}

/** Secrets, databases and volumes are never among them. */
function removalsOf(file: ProjectFile, { site, databases, schedules }: Actual): Removal[] {
  const linked = new Set(linksOf(site, databases).map(({ variable }) => variable));
  const { variables, domains } = file;
  const kept = new Set(domains?.map((name) => name.toLowerCase()));
  const names = new Set(file.schedules?.map(({ name }) => name));
  return [
    ...(variables === undefined ? [] : (site?.envVariables ?? []))
      .filter(({ key, encrypted }) => !encrypted && !linked.has(key) && !Object.hasOwn(variables ?? {}, key))
      .map(({ key }): Removal => ({ kind: "removeVariable", name: key })),
    ...(domains === undefined ? [] : (site?.domains ?? []))
      .filter(({ domain, displayName }) => !kept.has(domain) && !kept.has(displayName.toLowerCase()))
      .map(({ domain }): Removal => ({ kind: "removeDomain", name: domain })),
    ...(file.schedules === undefined ? [] : schedules)
      .filter(({ name }) => !names.has(name))
      .map(({ id, name }): Removal => ({ kind: "removeSchedule", name, id })),
  ];
}

/** Variables of the file that are secrets on the site, which a file must not hold. */
export const secretsOf = ({ variables }: ProjectFile, { site }: Actual): string[] =>
  (site?.envVariables ?? [])
    .filter(({ key, encrypted }) => encrypted && Object.hasOwn(variables ?? {}, key))
    .map(({ key }) => key);

/** The databases of a site, each with its variable. */
const linksOf = (site: Site | null, databases: readonly Database[]) =>
  databases.flatMap(({ name, type, links }) =>
    links.filter(({ siteId }) => siteId === site?.id).map(({ variable }) => ({ name, type, variable })),
  );

/** What two databases of the file have in common of which a site has each once: a name or a variable. undefined: nothing. */
export function sharedBy({ databases = [] }: ProjectFile): string | undefined {
  const seen = new Set<string>();
  for (const database of databases)
    for (const one of [`of the name ${database.name}`, `as ${variableOf(database)}`]) {
      if (seen.has(one)) return one;
      seen.add(one);
    }
  return undefined;
}

/** The first link that the service would refuse: a site has a database once, and a variable has one database. */
export function linkInTheWay(
  file: ProjectFile,
  { site, databases }: Actual,
): Record<"wanted" | "has", { name: string; variable: string }> | undefined {
  const links = linksOf(site, databases);
  for (const database of file.databases ?? []) {
    const wanted = { name: database.name, variable: variableOf(database) };
    const has = links.find((one) => (one.name === wanted.name) !== (one.variable === wanted.variable));
    if (has) return { wanted, has: { name: has.name, variable: has.variable } };
  }
  return undefined;
}

/** Those that are set. */
export const withoutNull = (settings: object) =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null));

/** The file that describes a site as it is. Applying it changes nothing. */
export function fileOf(site: Site, { databases, schedules }: Omit<Actual, "site">): ProjectFile {
  const linked = linksOf(site, databases);
  const { githubUrl, branch, rootDir, image, name } = site;
  const source = withoutNull({ repository: githubUrl, branch, rootDir, image });
  const settings = withoutNull({
    port: site.port,
    buildCommand: site.buildCommand,
    startCommand: site.startCommand,
    releaseCommand: site.releaseCommand,
    installCommand: site.installCommand,
    dockerfilePath: site.dockerfilePath,
    builder: site.builder,
    outputDir: site.outputDir,
    singlePage: site.singlePage,
    languageVersion: site.languageVersion,
    startTimeoutSeconds: site.startTimeoutSeconds,
    healthCheckPath: site.healthCheckPath,
    ...(site.replicas !== 1 && { replicas: site.replicas }),
    ...(site.volumes.length > 0 && { volumes: site.volumes }),
    ...(Object.keys(site.lifecycle).length > 0 && { lifecycle: site.lifecycle }),
  });
  const inLinks = new Set(linked.map(({ variable }) => variable));
  const variables = Object.fromEntries(
    site.envVariables.flatMap(({ key, value, encrypted }) =>
      encrypted || value === null || inLinks.has(key) ? [] : [[key, value]],
    ),
  );
  return {
    name,
    ...(Object.keys(source).length > 0 && { source }),
    settings,
    ...(Object.keys(variables).length > 0 && { variables }),
    ...(site.domains.length > 0 && { domains: site.domains.map(({ domain }) => domain) }),
    ...(linked.length > 0 && { databases: linked }),
    ...(schedules.length > 0 && {
      schedules: schedules.map(({ name: title, cron, command, timeoutSeconds, enabled }) => ({
        name: title,
        cron,
        command,
        timeoutSeconds,
        enabled,
      })),
    }),
  };
}
