import protobuf from "protobufjs";
import { createHash } from "node:crypto";
import type { Duplex, Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { dial, openSession, type Modem } from "./buildkit-session.ts";
import { sendingStream, type Entry } from "./send-files.ts";

export type BuildRequest = {
  /** A stream that sends the context, as `FileSender` does; another one at each call. null: it is empty. */
  context: (() => Duplex) | null;
  /** Its name, as a clean path in the context, where it need not be. */
  dockerfile: { name: string; text: string };
  tag: string;
  labels: Record<string, string>;
  buildArgs: Record<string, string>;
  /**
   * Cache mounts, steps and sent files are shared only within a namespace, which another tenant's Dockerfile must not be able to
   * guess: a cached step may have created a key.
   */
  cacheNamespace: string;
  /** Reruns all steps; the package managers' cache mounts are kept. */
  isFresh?: boolean;
  /** Secret id → bytes, mounted only where a RUN requests it; never in a layer, in history or in the log. */
  secrets: ReadonlyMap<string, Uint8Array>;
  signal: AbortSignal;
  onLine: (text: string, stream: "system" | "stdout" | "stderr") => void;
};

/** The build failed because of the repository: `message` is the engine's, in one line. */
export class BuildFailed extends Error {
  override name = "BuildFailed";
  /** The last output of the failed step. */
  readonly lastLines: readonly string[];
  constructor(message: string, lastLines: readonly string[] = []) {
    super(message);
    this.lastLines = lastLines;
  }
}
/** An explanation may precede a long list or a usage text. */
const lastLinesKept = 200;
/** Per line; longer lines explain nothing and are not shown. */
const lastLineCharacters = 2000;
/** The engine repeats the step's whole command, and says at its end what became of it. */
const failureCharacters = 16 * 1024;
/**
 * Kept of an unfinished line: more than is shown of a line plus a secret, so that a secret across the cut stays
 * whole.
 */
const openLineCharacters = 48 * 1024;

/** The parts used of moby/buildkit's control.proto. */
const root = protobuf.Root.fromJSON({
  nested: {
    StatusResponse: {
      fields: {
        vertexes: { rule: "repeated", type: "Vertex", id: 1 },
        logs: { rule: "repeated", type: "VertexLog", id: 3 },
      },
    },
    Vertex: {
      fields: {
        digest: { type: "string", id: 1 },
        name: { type: "string", id: 3 },
        cached: { type: "bool", id: 4 },
        started: { type: "Timestamp", id: 5 },
        completed: { type: "Timestamp", id: 6 },
        error: { type: "string", id: 7 },
      },
    },
    Timestamp: { fields: { seconds: { type: "int64", id: 1 }, nanos: { type: "int32", id: 2 } } },
    VertexLog: {
      fields: {
        vertex: { type: "string", id: 1 },
        stream: { type: "int64", id: 3 },
        msg: { type: "bytes", id: 4 },
      },
    },
  },
});
const StatusResponse = root.lookupType("StatusResponse");

type Timestamp = { seconds: { toNumber(): number } | number; nanos: number };
type Status = {
  vertexes: {
    digest: string;
    name: string;
    cached: boolean;
    started: Timestamp | null;
    completed: Timestamp | null;
    error: string;
  }[];
  logs: { vertex: string; stream: { toNumber(): number } | number; msg: Uint8Array }[];
};

/** From then on a step's time is worth a line. */
const longStepMs = 1000;
const millisecondsOf = ({ seconds, nanos }: Timestamp): number =>
  (typeof seconds === "number" ? seconds : seconds.toNumber()) * 1000 + nanos / 1e6;

/**
 * What is sent of a folder that BuildKit asks for by its name. It looks for a .dockerignore of the context's by itself, whose rules
 * are applied already.
 */
function folderOf({ context, dockerfile }: BuildRequest, name: string, paths: string): Duplex {
  if (name === "dockerfile") return sendingStream(withFolders(dockerfile));
  return context === null || name !== "context" || paths === ".dockerignore" ? sendingStream([]) : context();
}

/** Of the same time for the same text: of the same time and size, BuildKit takes it for the one it has. */
function withFolders({ name, text }: BuildRequest["dockerfile"]): Entry[] {
  const from = Buffer.from(text);
  const modifiedMs = createHash("sha256").update(from).digest().readUIntBE(0, 5);
  const folders = name.split("/").slice(0, -1);
  return [
    ...folders.map((_, index) => ({
      type: "folder" as const,
      path: folders.slice(0, index + 1).join("/"),
      permissions: 0o755,
      modifiedMs,
    })),
    { type: "file", path: name, permissions: 0o644, modifiedMs, bytes: from.length, from },
  ];
}

/**
 * A host name for the build steps that makes their cache keys unique per namespace and secret values, which BuildKit
 * leaves out of the keys.
 */
function ownHost({ cacheNamespace, secrets }: BuildRequest): string {
  const hash = createHash("sha256").update(cacheNamespace);
  for (const [id, value] of [...secrets].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`\0${id}\0${value.length}\0`).update(value);
  return `cache-${hash.digest("hex").slice(0, 32)}.invalid`;
}

/** Builds with BuildKit (`/build?version=2`); aborting ends the build in the engine. */
export async function buildImage(modem: Modem, request: BuildRequest): Promise<void> {
  const session = await openSession(modem, {
    secrets: request.secrets,
    folder: (name, paths) => folderOf(request, name, paths),
    sharedKey: request.cacheNamespace,
  });
  try {
    request.signal.throwIfAborted();
    const answer = (await dial(modem, {
      path: "/build?",
      method: "POST",
      abortSignal: request.signal,
      options: {
        version: "2",
        session: session.id,
        buildid: session.id,
        remote: "client-session",
        dockerfile: request.dockerfile.name,
        t: request.tag,
        labels: JSON.stringify(request.labels),
        buildargs: JSON.stringify({
          ...request.buildArgs,
          BUILDKIT_CACHE_MOUNT_NS: request.cacheNamespace,
        }),
        extrahosts: `${ownHost(request)}:127.0.0.1`,
        ...(request.isFresh && { nocache: "1" }),
        rm: true,
        forcerm: true,
      },
      // The library's own would not be read, without which the engine does not notice that the connection ends.
      file: Buffer.alloc(0),
      isStream: true,
      statusCodes: { 200: true, 400: "bad request", 500: "server error" },
    })) as Readable;
    await readProgress(answer, request);
  } finally {
    session.close();
  }
}

/** Reads JSON lines: BuildKit's status as base64 protobuf, and at most one error. */
async function readProgress(answer: Readable, { onLine, signal }: BuildRequest): Promise<void> {
  const named = new Set<string>();
  const timed = new Set<string>();
  type OpenLine = { vertex: string; stream: "stdout" | "stderr"; text: string; decoder: StringDecoder };
  const partial = new Map<string, OpenLine>();
  const written = new Map<string, string[]>();
  let failure: string | undefined;
  let failedStep = "";
  const write = (vertex: string, stream: "stdout" | "stderr", line: string) => {
    onLine(line, stream);
    if (line.trim() === "") return;
    const lines = written.get(vertex) ?? [];
    written.set(vertex, lines);
    if (lines.push(line.slice(0, lastLineCharacters)) > lastLinesKept) lines.shift();
  };
  const say = (vertex: string, stream: "stdout" | "stderr", bytes: Uint8Array) => {
    const key = `${vertex}:${stream}`;
    const { text, decoder } = partial.get(key) ?? { text: "", decoder: new StringDecoder() };
    // Chunks may end anywhere, even within a character.
    const lines = (text + decoder.write(Buffer.from(bytes))).split(/\r?\n|\r/);
    partial.set(key, { vertex, stream, decoder, text: (lines.pop() ?? "").slice(0, openLineCharacters) });
    for (const line of lines) write(vertex, stream, line);
  };
  const end = (ended: string) => {
    for (const [key, { vertex, stream, text }] of partial) {
      if (vertex !== ended) continue;
      if (text) write(vertex, stream, text);
      partial.delete(key);
    }
  };
  const read = (line: string) => {
    const event = JSON.parse(line) as {
      id?: string;
      aux?: unknown;
      error?: string;
      errorDetail?: { message?: string };
    };
    // `error` is deprecated in the API.
    failure = event.errorDetail?.message ?? event.error ?? failure;
    if (event.id !== "moby.buildkit.trace" || typeof event.aux !== "string") return;
    const status = StatusResponse.toObject(StatusResponse.decode(Buffer.from(event.aux, "base64")), {
      arrays: true,
      defaults: true,
    }) as Status;
    for (const { digest, name, cached, started, error } of status.vertexes) {
      // Steps parallel to the failed one are cancelled, which also appears as an error.
      if (error !== "" && !error.endsWith("context canceled")) failedStep ||= digest;
      // All steps are announced before the first begins; each is logged when it starts.
      if (started === null || named.has(digest)) continue;
      if (name.startsWith("[internal]")) continue;
      named.add(digest);
      onLine(cached ? `${name} (cached)` : name, "system");
    }
    for (const { vertex, stream, msg } of status.logs) {
      const number = typeof stream === "number" ? stream : stream.toNumber();
      say(vertex, number === 2 ? "stderr" : "stdout", msg);
    }
    // A build may have thousands of steps: the state of successful ones is dropped.
    for (const { digest, name, cached, started, completed, error } of status.vertexes)
      if (completed !== null && error === "") {
        end(digest);
        written.delete(digest);
        const tookMs = started === null || cached ? 0 : millisecondsOf(completed) - millisecondsOf(started);
        if (tookMs >= longStepMs && named.has(digest) && !timed.has(digest)) {
          timed.add(digest);
          onLine(
            `${/^\[[^\]]{1,60}\]/.exec(name)?.[0] ?? name} took ${(tookMs / 1000).toFixed(1)} s`,
            "system",
          );
        }
      }
  };
  let rest = "";
  for await (const chunk of answer.setEncoding("utf8") as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) read(line);
  }
  if (rest.trim()) read(rest);
  for (const { vertex } of partial.values()) end(vertex);
  signal.throwIfAborted();
  if (failure !== undefined)
    throw new BuildFailed(failure.replace(/\s+/g, " ").slice(0, failureCharacters), written.get(failedStep));
}
