/** Whether these lines report a full disk. Each program has its own wording; PostgreSQL has a code. */
export const saysDiskFull = (lines: readonly string[]): boolean => lines.some((line) => words.test(line));

const words =
  /no space left on device|disk quota exceeded|could not extend|disk(?: is)? full|the table '.*' is full|err(?:no|code|or)?:? (?:number )?28\b|(?:error|fatal|panic): +53100\b/i;

/** @param then what to do once there is room */
export const diskIsFull = (then: string): string =>
  `The host's disk is full: ask the operator to make room, then ${then}.`;

/** Whether the text reports a disk that can no longer be read or written. */
export const saysDiskBroken = (text: string): boolean =>
  /\bEIO\b|\bEROFS\b|input\/output error|disk I\/O error|read-only file system/i.test(text);
