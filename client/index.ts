export {
  createClient,
  operationNamed,
  requestOf,
  type CallOptions,
  type Client,
  type ClientOptions,
} from "./client.ts";
export { ProjectFile } from "../protocol/api/project-file.ts";
export { ApiError, errorOf, NetworkError } from "./errors.ts";
export {
  Allowance,
  costOf,
  maxPayloadBytes,
  piecesOf,
  streamCloseCodes,
  ToStreamClient,
} from "../protocol/api/streams.ts";
export type { ServerEvent } from "./events.ts";
export type { Answer, Input, ListId, OperationId, StreamId } from "./types.ts";
