/** Whether programs say in these lines that there is no room on their disk; each has words of its own for it. */
export const saysDiskFull = (lines: readonly string[]): boolean => lines.some((line) => words.test(line));

const words =
  /no space left on device|could not extend|disk(?: is)? full|the table '.*' is full|err(?:no|code|or)?:? (?:number )?28\b/i;
