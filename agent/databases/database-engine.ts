import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Program } from "../docker/engine.ts";

/** What differs from one kind of database server to the next. Nothing here touches Docker. */
export type DatabaseEngine = {
  /** Where the official image keeps its data. */
  dataPath: string;
  /** One of these is there whenever it was used. */
  dataFiles: readonly string[];
  /** Where its socket lies, and a lock that must not outlive the process: in memory. */
  socketFolder?: string;
  /** The official image's variables. */
  env(spec: DatabaseSpec): string[];
  /** The server with a configuration that fits its memory; no secrets. */
  command(limits: DatabaseSpec["limits"]): string[];
  /** What else it runs with on the account's network, where it ends TLS: who comes from elsewhere must use it. */
  guarded(subnet: string): string[];
  /** Where it takes TLS. */
  tlsPort: number;
  /** Whom it runs as: the first of these that the image has. */
  users: readonly [string, ...string[]];
  /** A file beside its certificate. */
  accessFile?: { name: string; text: string };
  /** Takes up the certificate that now lies there; connections stay. */
  renew(spec: DatabaseSpec, run: Run): Promise<void>;
  /** Asks it to end with everything written and connections cut. */
  stopSignal: string;
  /** A file for the folder of its data, before the server starts. */
  file?(spec: DatabaseSpec): { name: string; text: string };
  /** Succeeds once the server takes connections over the network, which no image's server does while it sets itself up. */
  ready: { program(spec: DatabaseSpec): Program; says?: string };
  /** Makes the database, its owner and its logins what the spec says, whatever they were. */
  arrange(spec: DatabaseSpec, run: Run): Promise<void>;
  /** What its logins may write; an arrangement allows everything again. None where memory bounds what it holds. */
  limitWrites?: { envName: string; program(database: Held, writes: Writes): Program };
  /** The server's own word for its version. */
  version(spec: DatabaseSpec, run: Run): Promise<string>;
};

/** `less`: nothing that takes room. `none`: nothing, and no reading either. */
export type Writes = "all" | "less" | "none";
/** A database whose spec is not at hand, by its container's own variables. */
export type Held = Pick<DatabaseSpec, "databaseName" | "adminPassword">;

/** Of the container's own, so that what is secret in it is in no volume, and goes with it. */
export const tlsFolder = "/etc/berth";
export const certificateFile = `${tlsFolder}/server.crt`;
export const keyFile = `${tlsFolder}/server.key`;

/** Runs a program in the server's container; answers what it printed. @throws when it fails */
export type Run = (program: Program) => Promise<string>;

/** Megabytes of memory for one connection, and so how many there may be. */
const connectionMb = 8;
export const maxConnections = ({ memoryMb }: DatabaseSpec["limits"]): number =>
  Math.min(400, Math.max(20, Math.floor(memoryMb / connectionMb)));
