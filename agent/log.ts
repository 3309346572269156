type Level = "info" | "warn" | "error";

/** The agent's own log: one JSON object a line on stderr, which the supervisor or journald keeps. */
export function log(level: Level, message: string, facts: Record<string, unknown> = {}): void {
  const error = facts["error"];
  const shown =
    error instanceof Error
      ? { error: error.stack ?? String(error), cause: error.cause && String(error.cause) }
      : {};
  process.stderr.write(
    `${JSON.stringify({ at: new Date().toISOString(), level, message, ...facts, ...shown })}\n`,
  );
}
