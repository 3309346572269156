export {
  createClient,
  operationNamed,
  requestOf,
  type CallOptions,
  type Client,
  type ClientOptions,
} from "./client.ts";
export { ApiError, NetworkError } from "./errors.ts";
export type { ServerEvent } from "./events.ts";
export type { Answer, Input, ListId, OperationId, StreamId } from "./types.ts";
