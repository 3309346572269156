import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { createEngine } from "../../agent/docker/client.ts";
import { formatId, type Id, type IdKind } from "../../protocol/ids.ts";
import { dockerSocket } from "../../scripts/lib/docker-engine.ts";

export const socketPath = dockerSocket();

/** This machine's engine, as the agent uses it. */
export const engine = createEngine({ socketPath });

/** Runs a program of this machine. @throws Error with its output if it fails */
export const execute = promisify(execFile);

/** Runs the engine's own client. @returns what it prints, without white space around it */
export const docker = async (...args: string[]): Promise<string> =>
  (await execute("docker", args)).stdout.trim();

/** An id as the control plane makes it. */
export const newId = <K extends IdKind>(kind: K): Id<K> => formatId(kind, Date.now(), randomBytes(10));
