import { Socket } from "node:net";
import type { ServerQuestion } from "../../../protocol/agent/running.ts";
import type { DatabaseInsight, DatabaseQueryResult, DatabaseSchema } from "../../../protocol/api/insight.ts";

/** A running server and the login for it. */
export type Place = {
  address: string;
  databaseName: string;
  login: Login;
  /** For PostgreSQL: a role that may read everything and do nothing else. @throws if the server cannot create it */
  reader: () => Promise<Login>;
  signal: AbortSignal;
};
export type Login = ServerQuestion["login"];

/** `dryRun`: like `write`, and rolled back. */
type Asked = { statement: string; write: boolean; dryRun: boolean; limit: number; timeoutMs: number };
export type Answered = Omit<DatabaseQueryResult, "durationMs">;

/** The questions for one type of server. Everything runs with the customer's own login, or with fewer rights. */
export type Inspector = {
  insight(place: Place): Promise<DatabaseInsight>;
  schema(place: Place): Promise<DatabaseSchema>;
  /** @throws StatementError */
  query(place: Place, asked: Asked): Promise<Answered>;
  /** @returns false if there is no such session. @throws StatementError if the login may not end it */
  endSession(place: Place, session: string): Promise<boolean>;
};

/** The message is shown to the person who wrote the statement. */
export class StatementError extends Error {
  override name = "StatementError";
}

/** The server does not let the database's login in, which its owner can change. The message is shown to them. */
export class SignInError extends Error {
  override name = "SignInError";
}
export const passwordChanged = () =>
  new SignInError(
    "The server refuses the password that Berth has for this database, so it was changed in the database itself. Restart the database, which sets it back, or rotate the password for a new one.",
  );
export const connectionsTaken = () =>
  new SignInError(
    "All connections that the database's login may have are in use: close some in your sites and other clients, which a restart of the database does, or change to a larger pack, which allows more.",
  );

/** The refusal of what only later statements of the same session would notice. */
export const sessionOnly = (what: string) =>
  new StatementError(
    `Each statement runs in a session of its own, so ${what} has no effect here: leave it out, or connect a client (\`berth databases tunnel\`) for several statements in one session.`,
  );

/** Limit on bytes without a complete row: beyond it, one value is huge, and the agent has little memory. */
const maxHeldBytes = 20 * 1024 * 1024;

export const tooLarge = () =>
  new StatementError(
    "One row of the result is larger than 960 KiB: select part of it, such as the first characters of a long column.",
  );

/** A connection that ends with the question, or before the server's data fills the agent's memory. */
type BoundedSocket = {
  socket: Socket;
  /** Reports that the data so far was consumed. */
  taken: () => void;
};

export function boundedSocket(signal: AbortSignal): BoundedSocket {
  const socket = new Socket();
  let held = 0;
  socket.on("data", (chunk: Buffer) => {
    held += chunk.length;
    if (held > maxHeldBytes) socket.destroy(tooLarge());
  });
  const end = () => socket.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener("abort", end, { once: true });
  socket.once("close", () => signal.removeEventListener("abort", end));
  if (signal.aborted) end();
  return { socket, taken: () => (held = 0) };
}

export const megabytes = (bytes: number): number => Math.round((bytes / 1024 / 1024) * 100) / 100;
export const rounded = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000;
