/** The most that is told of a repository; apart from `api/sources.ts`, so that a reader need not load Zod. */
export const maxBranches = 200;
export const maxRootDirs = 50;
export const maxVariables = 200;
export const maxNotes = 20;
/** Characters of each. */
export const maxBranchName = 300;
export const maxFolder = 300;
export const maxCommand = 2000;
export const maxSentence = 2000;
export const maxWord = 100;
