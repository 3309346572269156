import type { ById } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { databaseEngines } from "../../domain/database-engines.ts";
import { connectStream } from "../running/connect-stream.ts";
import { demandServer } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/**
 * A connection to the database's server, as if from a site beside it: the server asks for its own password.
 * @throws AppError payment_required; conflict if no server is running or its host does not answer
 */
export async function openTunnel(ctx: Ctx, { id }: ById): Promise<WebSocket> {
  const database = await databaseOwnedBy(ctx, id);
  await demandServer(ctx, database);
  const { port } = databaseEngines[database.type];
  return connectStream(ctx, database.hostId, { kind: "database", databaseId: database.id, port });
}
