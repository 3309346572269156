import { errorCatalogue, type ErrorCode } from "../../protocol/errors.ts";

/** A refusal: `code` decides status and `error` text, `extra` is sent beside it, `cause` only logged. */
export class AppError extends Error {
  override name = "AppError";
  readonly code: ErrorCode;
  readonly extra: Record<string, unknown>;
  constructor(code: ErrorCode, extra: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(errorCatalogue[code].text, options);
    this.code = code;
    this.extra = extra;
  }
}

/** 409 with the reason a person reads. */
export const conflict = (reason: string) => new AppError("conflict", { reason });

/** 400 for a value that only the services can judge, in the shape of a schema's refusal. */
export const invalid = (path: string, message: string) =>
  new AppError("invalid_request", { issues: [{ path, message }] });
