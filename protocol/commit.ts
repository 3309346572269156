/** A commit's whole hash: SHA-1, or SHA-256 in repositories that were made with it. */
export const wholeCommit: RegExp = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
