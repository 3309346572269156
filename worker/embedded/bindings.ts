/** What `npm start` binds and wrangler.toml does not have; `scripts/control-plane.ts` does it. No imports: everybody's types depend on it. */
export type Value = ArrayBuffer | string | number | null;
export type Query = { sql: string; params: Value[] };
export type Answer = {
  columns: string[];
  rows: Value[][];
  changes: number;
  lastRowId: number;
  version: number;
};
export type EmbeddedDatabaseRpc = {
  query(queries: Query[]): Promise<Answer[]>;
} & Rpc.DurableObjectBranded;

/** When a key was used lately: `Uses` of `objects/guard.ts`. */
type KeyUses = { hits: number[]; touchedAtMs: number };
export type Change = [keyHash: string, uses: KeyUses | null];
export type KeyUsesRpc = {
  read(keyHash: string): Promise<KeyUses | undefined>;
  write(changes: Change[]): Promise<void>;
} & Rpc.DurableObjectBranded;

type ClockRpc = { start(nowMs: number): Promise<void> } & Rpc.DurableObjectBranded;

declare global {
  // oxlint-disable-next-line typescript/no-namespace
  namespace Cloudflare {
    interface Env {
      DB: D1Database;
      EMBEDDED_DATABASE: DurableObjectNamespace<EmbeddedDatabaseRpc>;
      GUARDS: unknown;
      KEY_USES: DurableObjectNamespace<KeyUsesRpc>;
      CLOCK: DurableObjectNamespace<ClockRpc>;
      /** How often the tasks of the clock run; without it they never do. */
      TICK_MS?: string;
    }
  }
}
