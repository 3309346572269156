/**
 * What an error says, and everything behind it. Of a query only its text: the parameters are tenants' secrets, and drizzle-orm
 * puts them into the message, which an error that came from a Durable Object has kept as its only member.
 */
const textOf = (error: unknown): string =>
  String(error).replace(/(Failed query: [\s\S]*?)\nparams: [\s\S]*$/, "$1");

/** The frames only: a stack begins with the message. */
function framesOf(error: Error): string | undefined {
  const { stack, message } = error;
  if (stack === undefined) return undefined;
  const at = message === "" ? -1 : stack.indexOf(message);
  return (at < 0 ? stack : stack.slice(at + message.length))
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}

const maxCauses = 10;

/** Nearest first. */
function causesOf(error: unknown): string[] {
  const texts: string[] = [];
  const waiting: unknown[] = [error];
  while (waiting.length > 0 && texts.length < maxCauses) {
    const one = waiting.shift();
    if (one !== error) texts.push(textOf(one));
    if (!(one instanceof Error)) continue;
    const causes = [one.cause, ...(one instanceof AggregateError ? (one.errors as unknown[]) : [])];
    waiting.push(...causes.flat().filter((cause) => cause !== undefined && cause !== null));
  }
  return texts;
}

/** One line of JSON; `about` says where it happened. */
export function logError(about: Record<string, unknown>, error: unknown): void {
  console.error(
    JSON.stringify({
      level: "error",
      ...about,
      error: textOf(error),
      causes: causesOf(error),
      ...(error instanceof Error && { stack: framesOf(error) }),
    }),
  );
}
