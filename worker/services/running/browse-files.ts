import type { ById } from "../../../protocol/api/common.ts";
import type { Browsed, FilesQuery } from "../../../protocol/api/files.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { askHostOf } from "./ask-host.ts";
import { siteAndMasks } from "./masks.ts";

/** A folder or a file of the site as its host has it. @throws AppError not_found, or conflict if it cannot be shown */
export async function browseFiles(ctx: Ctx, { id, path, volume }: ById & FilesQuery): Promise<Browsed> {
  const { site, masks } = await siteAndMasks(ctx, id);
  const answer = await askHostOf<"files">(ctx, site, {
    kind: "files",
    siteId: site.id,
    path,
    volume: volume ?? null,
    masks,
  });
  if (!answer) throw conflict("This site has not run yet, so there are no files.");
  return answer.found;
}
