/** The most that is told of a repository; apart from `api/sources.ts`, so that a reader need not load Zod. */
export const maxBranches = 200;
export const maxRootDirs = 50;
export const maxVariables = 200;
