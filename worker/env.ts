import type {
  AccountEventsRpc,
  ConversationRpc,
  DeploymentLogRpc,
  DeviceCodeRpc,
  HostLinkRpc,
  Guarding,
  KeyGuardRpc,
  PendingCallRpc,
  RateLimitRpc,
} from "./objects/rpc.ts";

/** Bindings as wrangler.toml names them. */
export type Env = {
  DB: D1Database;
  /** Backups of databases; worker/adapters/storage.ts. */
  BACKUPS: R2Bucket;
  /** Files beside the Worker; scripts/lib/bundle.ts makes them. */
  ASSETS: Fetcher;
  /** The ingress of this machine, where the sites' names are of this machine alone (RFC 6761): they are in no DNS. */
  INGRESS?: Fetcher;
  HOST_LINK: DurableObjectNamespace<HostLinkRpc>;
  KEY_GUARD: DurableObjectNamespace<KeyGuardRpc>;
  /** The guards of worker/embedded, which take the place of KEY_GUARD. */
  GUARDS?: ((keyHash: string) => Guarding) | undefined;
  DEPLOYMENT_LOG: DurableObjectNamespace<DeploymentLogRpc>;
  DEVICE_CODE: DurableObjectNamespace<DeviceCodeRpc>;
  RATE_LIMIT: DurableObjectNamespace<RateLimitRpc>;
  CONVERSATION: DurableObjectNamespace<ConversationRpc>;
  ACCOUNT_EVENTS: DurableObjectNamespace<AccountEventsRpc>;
  PENDING_CALL: DurableObjectNamespace<PendingCallRpc>;
};
