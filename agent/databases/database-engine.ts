import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Program } from "../docker/engine.ts";

/** The differences between types of database servers. Nothing here uses Docker. */
export type DatabaseEngine = {
  /** The data directory of the official image. */
  dataPath: string;
  /** At least one of these exists in a directory that was used. */
  dataFiles: readonly string[];
  /** The directory of its socket and lock, which must not outlive the process; it is in memory. */
  socketFolder?: string;
  /** The official image's variables. */
  env(spec: DatabaseSpec): string[];
  /** The server with a configuration that fits its memory; no secrets. */
  command(limits: DatabaseSpec["limits"]): string[];
  /** Further arguments on the account's network, which enable TLS and require it of clients from elsewhere. */
  guarded(subnet: string): string[];
  /** The port that accepts TLS. */
  tlsPort: number;
  /** The users it may run as: the first one that the image has. */
  users: readonly [string, ...string[]];
  /** A file beside its certificate. */
  accessFile?: { name: string; text: string };
  /** Reloads the certificate without closing connections. */
  renew(spec: DatabaseSpec, run: Run): Promise<void>;
  /** The signal for a clean shutdown: everything written, connections closed. */
  stopSignal: string;
  /** A file for the data directory, written before the server starts. */
  file?(spec: DatabaseSpec): { name: string; text: string };
  /** Succeeds once the server accepts network connections, which no image's server does while it initializes. */
  ready: { program(spec: DatabaseSpec): Program; says?: string };
  /** Creates or updates the database, its owner and its logins to match the spec. */
  arrange(spec: DatabaseSpec, run: Run): Promise<void>;
  /** Limits what its logins may write; `arrange` lifts the limit. Absent if memory bounds its data. */
  limitWrites?: { envName: string; program(database: Held, writes: Writes): Program };
  /** The version reported by the server. */
  version(spec: DatabaseSpec, run: Run): Promise<string>;
};

/** `less`: no statements that need disk space. `none`: no statements at all. */
export type Writes = "all" | "less" | "none";
/** A database whose spec is not at hand, from its container's own variables. */
export type Held = Pick<DatabaseSpec, "databaseName" | "adminPassword">;

/** In the container's writable layer, so that its secrets are in no volume and are removed with it. */
export const tlsFolder = "/etc/berth";
export const certificateFile = `${tlsFolder}/server.crt`;
export const keyFile = `${tlsFolder}/server.key`;

/** Runs a program in the server's container and returns its output. @throws if it fails */
export type Run = (program: Program) => Promise<string>;

/** Memory per connection in MB, which determines the number of connections. */
const connectionMb = 8;
export const maxConnections = ({ memoryMb }: DatabaseSpec["limits"]): number =>
  Math.min(400, Math.max(20, Math.floor(memoryMb / connectionMb)));
