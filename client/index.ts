export {
  createClient,
  operationList,
  operationNamed,
  type NamedOperation,
  requestOf,
  type CallOptions,
  type Client,
  type ClientOptions,
} from "./client.ts";
export { envLine, parseEnvFile } from "../protocol/env-file.ts";
export type { Answers } from "../protocol/cli.ts";
export type { ProjectFile } from "../protocol/api/project-file.ts";
export { ApiError, errorOf, NetworkError } from "./errors.ts";
export type { ServerEvent } from "./events.ts";
export type { Answer, Input, ListId, OperationId, StreamId } from "./types.ts";
