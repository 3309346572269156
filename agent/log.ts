type Level = "info" | "warn" | "error";

/** As in tests, which provoke what it would tell. */
const isSilent = process.env["BERTH_LOG"] === "off";

/** The agent's own log: one JSON object a line on stderr, which the supervisor or journald keeps. */
export function log(level: Level, message: string, facts: Record<string, unknown> = {}): void {
  if (isSilent) return;
  const error = facts["error"];
  const shown =
    error instanceof Error
      ? {
          error: error.stack ?? String(error),
          cause: error.cause instanceof Error ? error.cause.message : undefined,
        }
      : {};
  process.stderr.write(
    `${JSON.stringify({ at: new Date().toISOString(), level, message, ...facts, ...shown })}\n`,
  );
}
