import { parseEnv } from "node:util";

/** The variables of a `.env` file, as Node reads it (`node --env-file`). Lines that are no assignment are ignored. */
export const parseDotenv = (text: string): Record<string, string> => ({
  ...(parseEnv(text) as Record<string, string>),
});

/** Text that `parseDotenv` reads back as the same values. @returns the names that the format cannot hold as well */
export function formatDotenv(values: Record<string, string>): { text: string; left: string[] } {
  const left: string[] = [];
  const lines: string[] = [];
  for (const [key, value] of Object.entries(values)) {
    const line = [value, `'${value}'`, `"${value}"`, `\`${value}\``]
      .map((quoted) => `${key}=${quoted}`)
      .find(
        (one) =>
          parseDotenv(one)[key] === value &&
          Object.keys(parseDotenv(`${one}\nZ_=1`)).join() === [key, "Z_"].join(),
      );
    if (line === undefined) left.push(key);
    else lines.push(line);
  }
  return { text: lines.map((line) => `${line}\n`).join(""), left };
}
