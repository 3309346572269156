/** How compilers, bundlers, runtimes and package managers write the line that says why they ended. */
const signs = [
  /(?:^|[\s(])error(?:\[\w+\]| [A-Z]+\d+)?:\s+\S/i,
  /^(?:Exception in thread "[^"]*" )?[\w.$]*(?:Error|Exception)(?: \[\w+\])?: \S/,
  /\((?:\w+::)*\w*Error\)$/,
  /^\S+\.go:\d+:\d+: \S/,
  /^(?:panic|fatal|Module not found|Caused by): \S/i,
  /^ERROR in \S|\[ERROR\] \S/,
  /^npm error Missing script: /,
];

/** Whether a line of a program's output says why it ended, as far as lines are written alike. */
export const isErrorLine = (line: string): boolean => signs.some((sign) => sign.test(line.trim()));
