/** host/owner/repo of what people paste: with a scheme, a user, a query or a final slash. */
export const repositoryOf = (typed: string): string =>
  typed
    .trim()
    .replace(/^git@([^:/]+):/, "$1/")
    .replace(/^(?:https?|ssh|git):\/\/(?:[^@/]*@)?/, "")
    .replace(/[?#][^]*/, "")
    .replace(/\/+$/, "");

/** A site's name from its repository's; empty if there is none. */
export const nameFrom = (repository: string): string =>
  (repository.split("/").at(-1) ?? "")
    .replace(/\.git$/, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 63);
