export const mebibyte = 1024 * 1024;

/** To one decimal. */
export const megabytesOf = (bytes: number): number => Math.round((bytes / mebibyte) * 10) / 10;
