/**
 * Every label that the agent sets or reads. A tenant's container sets all of them, empty if unused: otherwise the
 * image's own labels would apply and could impersonate another tenant's container.
 */
export const label = {
  account: "berth.account",
  agent: "berth.agent",
  attempt: "berth.attempt",
  command: "berth.command",
  /** The site whose command a container runs; such a container does not count as the site's own. */
  commandsOf: "berth.commands-of",
  /** A hash of the specification: a container with another one is replaced. */
  config: "berth.config",
  /** A server for verifying or restoring a backup. */
  copy: "berth.copy",
  database: "berth.database",
  deployment: "berth.deployment",
  disk: "berth.disk",
  /** Seconds that it may drain after it was replaced; empty: the host's own. */
  drain: "berth.drain",
  guarded: "berth.guarded",
  health: "berth.health",
  /** JSON of how it is checked; empty: as the host does. */
  healthCheck: "berth.health-check",
  ingress: "berth.ingress",
  job: "berth.job",
  managed: "berth.managed",
  memory: "berth.memory",
  /** On an image: the release command of its Procfile, which runs before a new version serves. */
  release: "berth.release",
  replica: "berth.replica",
  replicas: "berth.replicas",
  /** Whether it is started again after an exit; empty: always. */
  restart: "berth.restart",
  secrets: "berth.secrets",
  site: "berth.site",
  /** Of an image: it holds files, which a server of ours serves. */
  static: "berth.static",
  /** Seconds between SIGTERM and SIGKILL; empty: the host's own. */
  stopTimeout: "berth.stop-timeout",
  timeout: "berth.timeout",
  /** On an image: a random value, so that its digest is known to nobody. */
  unguessable: "berth.unguessable",
  volume: "berth.volume",
  volumes: "berth.volumes",
} as const satisfies Record<string, `berth.${string}`>;

export type Labels = Record<string, string>;

/** All labels, without values. */
export const emptyLabels: Labels = Object.fromEntries(Object.values(label).map((name) => [name, ""]));
