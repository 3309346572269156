/**
 * Every label that the agent sets or reads. A tenant's container carries all of them, empty where it has no value: otherwise an
 * image's own labels would show through, and could claim to be another tenant's container.
 */
export const label = {
  account: "berth.account",
  agent: "berth.agent",
  attempt: "berth.attempt",
  command: "berth.command",
  /** The site whose command a container runs: such a container is none of the site's own. */
  commandsOf: "berth.commands-of",
  /** A hash of the specification: a container of another one is replaced. */
  config: "berth.config",
  /** A server that a backup is proven or restored with. */
  copy: "berth.copy",
  database: "berth.database",
  deployment: "berth.deployment",
  disk: "berth.disk",
  guarded: "berth.guarded",
  health: "berth.health",
  ingress: "berth.ingress",
  job: "berth.job",
  managed: "berth.managed",
  memory: "berth.memory",
  /** Of an image: what its Procfile runs in each new version before it serves. */
  release: "berth.release",
  replica: "berth.replica",
  replicas: "berth.replicas",
  secrets: "berth.secrets",
  site: "berth.site",
  /** Of an image: it holds files, which a server of ours serves. */
  static: "berth.static",
  timeout: "berth.timeout",
  volume: "berth.volume",
  volumes: "berth.volumes",
} as const satisfies Record<string, `berth.${string}`>;

export type Labels = Record<string, string>;

/** All of them, without a value. */
export const emptyLabels: Labels = Object.fromEntries(Object.values(label).map((name) => [name, ""]));
