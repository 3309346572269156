import type { ById } from "../../../protocol/api/common.ts";
import type { TerminalQuery } from "../../../protocol/api/streams.ts";
import type { Ctx } from "../../ctx.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { connectStream } from "../running/connect-stream.ts";
import { siteOwnedBy } from "./owned.ts";

/**
 * A program with a terminal in the site's first container in service, with its variables, secret ones included.
 * @throws AppError payment_required; conflict if the site does not run or its host does not answer
 */
export async function openTerminal(
  ctx: Ctx,
  { id, command, ...rest }: ById & TerminalQuery,
): Promise<WebSocket> {
  const site = await siteOwnedBy(ctx, id);
  await refuseUnpaid(ctx, site);
  return connectStream(ctx, site.hostId, {
    kind: "terminal",
    siteId: site.id,
    command: command ?? null,
    ...rest,
  });
}
