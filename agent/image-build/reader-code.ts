/**
 * What `reader.ts` is in the one file that hosts are served (scripts/lib/bundle.ts); null: the sources have it as a file. A function, because
 * Node gives up the text of one that is not called again.
 */
export const readerCode: (() => string) | null = null;
