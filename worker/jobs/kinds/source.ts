import type { MadeSource } from "../../../protocol/agent/jobs.ts";
import { wholeCommit } from "../../../protocol/commit.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteOf, type Material } from "./kind.ts";

/** The source of the deployment, with its credentials. @throws Error if the site has no source */
export function sourceOf(ctx: Ctx, material: Material): MadeSource {
  const { deployment } = material;
  const site = siteOf(material);
  const { deployType } = site;
  // A move or a rollback uses the source as it was, whatever has been changed or pushed since.
  const made = deployment?.build ?? site;
  const isAsItWas = deployment?.trigger === "move" || (deployment?.rollbackOf ?? null) !== null;
  if (deployType === "dockerfile" && made.dockerfile !== null)
    return { type: "dockerfile", text: made.dockerfile };
  if (deployType === "image" && made.image !== null) {
    const digest = isAsItWas ? (deployment?.imageDigest ?? deployment?.build?.imageDigest) : null;
    return {
      type: "image",
      reference: made.image,
      login: isSameServer(made.image, site.image) ? loginOf(ctx, site) : null,
      ...(typeof digest === "string" && { digest }),
    };
  }
  if (deployType === "github" && made.githubUrl !== null) {
    const token =
      site.gitTokenSealed === null || !isSameServer(made.githubUrl, site.githubUrl)
        ? null
        : ctx.secrets.open(site.gitTokenSealed, `sites.git_token:${site.id}`);
    const ref = isAsItWas ? null : (deployment?.ref ?? null);
    const isCommit = wholeCommit.test(ref ?? "");
    const commit = isAsItWas ? (deployment?.commit ?? null) : isCommit ? ref : null;
    return {
      type: "git",
      address: made.githubUrl,
      branch: isCommit ? made.branch : (ref ?? made.branch),
      token,
      ...(commit !== null && { commit }),
      ...(made.submodules && { submodules: true }),
      ...(made.lfs && { lfs: true }),
    };
  }
  throw new Error(`Site ${site.id} has no source`);
}

/** The present credentials belong to the server in the settings and are sent to no other. */
const isSameServer = (made: string, named: string | null): boolean =>
  made.split("/")[0] === named?.split("/")[0];

const loginOf = (ctx: Ctx, { id, registryUsername, registryPasswordSealed }: SiteRow) =>
  registryUsername === null || registryPasswordSealed === null
    ? null
    : {
        username: registryUsername,
        password: ctx.secrets.open(registryPasswordSealed, `sites.registry_password:${id}`),
      };
