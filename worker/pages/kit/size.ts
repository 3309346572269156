const units = ["KB", "MB", "GB"] as const;

/** As the plans' sizes, the hosts' and the command line's: in powers of 1,024. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const power = bytes < 1024 ** 2 ? 1 : bytes < 1024 ** 3 ? 2 : 3;
  return `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}
