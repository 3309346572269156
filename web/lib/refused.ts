/** How long to wait before a stream is opened again that was refused: a browser itself only goes on with one that was interrupted. */
export const waitMs = (failures: number): number => [1000, 2000, 5000][failures - 1] ?? 10_000;
