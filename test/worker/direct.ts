import { Hono, type Context } from "hono";
import type { AppEnv } from "../../worker/app-env.ts";
import { configOf, tokenKeys } from "../../worker/config.ts";
import type { Actor } from "../../worker/ctx.ts";
import { mintApiKey, sha256Hex } from "../../worker/domain/tokens.ts";
import type { Env } from "../../worker/env.ts";
import { onError, onNotFound } from "../../worker/middleware/errors.ts";
import { newId } from "./billing-rows.ts";
import { bindings, siteUrl } from "./service.ts";

// For tests that ask one middleware or route themselves: nobody signs in, no limit is counted, and no guard is asked.

export const execution = {
  waitUntil: () => undefined,
  passThroughOnException: () => undefined,
  props: {},
};
export type Answering = (c: Context<AppEnv>) => Response | Promise<Response>;
export const made = () => new Hono<AppEnv>().onError(onError).notFound(onNotFound);
export const ask = async (app: Hono<AppEnv>, path: string, init?: RequestInit, env: object = bindings) =>
  app.fetch(new Request(path.includes(":") ? path : siteUrl + path, init), env, execution);

/** Limits that are noted instead of counted. One that is named here has a wait of so many seconds, or fails. */
export function notedLimits(refusing: Record<string, number | Error> = {}) {
  const noted: string[] = [];
  const counter = (name: string) => ({
    take: async () => {
      noted.push(name);
      const refusal = refusing[name.split(":")[0] ?? ""] ?? 0;
      if (refusal instanceof Error) throw refusal;
      return refusal;
    },
    giveBack: async () => void noted.push(`not ${name}`),
  });
  const limits = { RATE_LIMIT: { idFromName: (name: string) => name, get: counter } };
  return { noted, limits: limits as unknown as Pick<Env, "RATE_LIMIT"> };
}

export const keyOf = (more: object = {}) =>
  ({
    type: "key",
    accountId: newId("account"),
    role: "user",
    plan: "free",
    keyId: newId("key"),
    ...more,
  }) as Actor & { type: "key" };

/** A key that this installation has issued, and guards that know it as this actor's. */
export async function guardedKey(actor: (Actor & { type: "key" }) | null, more: object = {}) {
  const random = crypto.getRandomValues(new Uint8Array(32));
  const key = await mintApiKey(random, tokenKeys(configOf(bindings), "api-key-check")[0]);
  const asked: string[] = [];
  const verdict = { actor, admitted: true, limit: 60, left: 59, resetSeconds: 7, windowSeconds: 30, ...more };
  const GUARDS = (keyHash: string) => ({
    check: async (hash: string) => {
      asked.push(hash);
      return hash === sha256Hex(key) && keyHash === hash ? verdict : { ...verdict, actor: null };
    },
  });
  return { key, asked, guards: { GUARDS } };
}
