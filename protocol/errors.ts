/** All errors: code → HTTP status and the exact text of `error` (contract: Conventions). */
export const errorCatalogue = {
  invalid_request: { status: 400, text: "invalid_request" },
  unauthorized: { status: 401, text: "unauthorized" },
  payment_required: { status: 402, text: "payment_required" },
  forbidden: { status: 403, text: "forbidden" },
  not_found: { status: 404, text: "Not found" },
  conflict: { status: 409, text: "conflict" },
  payload_too_large: { status: 413, text: "payload_too_large" },
  unsupported_media_type: { status: 415, text: "unsupported_media_type" },
  idempotency_mismatch: { status: 422, text: "idempotency_mismatch" },
  rate_limited: { status: 429, text: "rate_limited" },
  server_error: { status: 500, text: "server_error" },
  not_implemented: { status: 501, text: "not_implemented" },
} as const;
export type ErrorCode = keyof typeof errorCatalogue;
