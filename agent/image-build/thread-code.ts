/** What `thread.ts` is in the one file that hosts are served (scripts/lib/bundle.ts); null: the sources have it as a file. */
export const threadCode: string | null = null;
