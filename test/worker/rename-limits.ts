import { bindings } from "./service.ts";

/** Limits are named after addresses and e-mails, which tests share; all other Durable Objects after ids, which are random. */
export function renameLimits(): void {
  const { RATE_LIMIT } = bindings;
  const prefix = crypto.randomUUID();
  const idFromName = Object.getPrototypeOf(RATE_LIMIT).idFromName as (name: string) => DurableObjectId;
  RATE_LIMIT.idFromName = (name) => idFromName.call(RATE_LIMIT, `${prefix}:${name}`);
}
