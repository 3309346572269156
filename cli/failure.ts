/** The exit codes that docs/manual/cli.md promises. */
export const exitCodes = {
  done: 0,
  failure: 1,
  usage: 2,
  signedOut: 3,
  notFound: 4,
  refused: 5,
  rateLimited: 6,
  paymentNeeded: 7,
  interrupted: 130,
  /** As of a program that SIGPIPE ends. */
  unread: 141,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** A command cannot go on. `hint` says what to do about it. */
export class Failure extends Error {
  override name = "Failure";
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;
  constructor(
    message: string,
    { exitCode = exitCodes.failure, hint }: { exitCode?: ExitCode; hint?: string } = {},
  ) {
    super(message);
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** Wrong arguments: exit code 2. */
export const usage = (message: string, hint?: string): Failure =>
  new Failure(message, { exitCode: exitCodes.usage, ...(hint !== undefined && { hint }) });

/** What ended a run some of whose steps are done: its `cause`. The message says which, and what to do about the rest. */
export class HalfDone extends Error {
  override name = "HalfDone";
  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}

/** The reason of an abort by Ctrl-C. */
export class Interrupted extends Error {
  override name = "Interrupted";
}
