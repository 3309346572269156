import type { ById } from "../../../protocol/api/common.ts";
import type { SecretGenerate } from "../../../protocol/api/diagnosis.ts";
import type { EnvChanged } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { setSiteEnv } from "./set-env.ts";

/** Sets a secret variable to a random value, which is sealed at once and never returned. */
export const generateSecret = (
  ctx: Ctx,
  { id, key, length, scope }: ById & SecretGenerate,
): Promise<EnvChanged> => {
  const value = Buffer.from(ctx.random(length)).toString("base64url").slice(0, length);
  return setSiteEnv(ctx, { id, envVariables: [{ key, value, encrypted: true, scope }] });
};
