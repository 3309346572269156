import { minReplicaMb } from "../../protocol/api/volumes.ts";
import { invalid } from "./app-error.ts";

/** Replicas share the pack's memory, and each needs enough to start. @throws AppError invalid_request */
export function refuseTooManyReplicas(
  path: string,
  replicas: number,
  packMb: number,
  pack = "the site's pack",
): void {
  if (packMb / replicas >= minReplicaMb || replicas === 1) return;
  const most = Math.max(1, Math.floor(packMb / minReplicaMb));
  throw invalid(
    path,
    `replicas share the ${packMb} MB of ${pack}, and each needs ${minReplicaMb} MB: use at most ${most}, or choose a larger pack`,
  );
}
