import type { Ctx } from "../../ctx.ts";
import { invalid } from "../../domain/app-error.ts";
import { whyNotFetched } from "../../domain/git-host.ts";

/** Rejects a source that hosts would not fetch before anything is paid for. @throws AppError invalid_request */
export function refuseUnfetched(ctx: Ctx, path: string, address: string | null | undefined): void {
  const reason = address == null ? null : whyNotFetched(address, ctx.config.INSECURE_GIT_HOSTS);
  if (reason !== null) throw invalid(path, reason);
}
