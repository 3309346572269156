import { errorCatalogue, type ErrorCode } from "../../protocol/errors.ts";

/** An error for the client: `code` determines the status and the `error` text, `extra` is added to the body. */
export class AppError extends Error {
  override name = "AppError";
  readonly code: ErrorCode;
  readonly extra: Record<string, unknown>;
  constructor(code: ErrorCode, extra: Record<string, unknown> = {}) {
    super(errorCatalogue[code].text);
    this.code = code;
    this.extra = extra;
  }
}

/** Nothing was wrong with the request: it is done when it is sent again with the `confirm` of this answer. */
export const asksToConfirm = (error: unknown): error is AppError & { extra: { confirm: string } } =>
  error instanceof AppError && typeof error.extra["confirm"] === "string";

/** 409 with a human-readable reason. */
export const conflict = (reason: string) => new AppError("conflict", { reason });

/** 400 for a value that only a service can validate, in the format of a schema error. */
export const invalid = (path: string, message: string) =>
  new AppError("invalid_request", { issues: [{ path, message }] });
