type Level = "info" | "warn" | "error";

/** For tests, which provoke errors on purpose. */
const isSilent = process.env["BERTH_LOG"] === "off";

/** The agent's own log: one JSON object per line on stderr, which the supervisor or journald stores. */
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
