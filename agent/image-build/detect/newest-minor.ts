import { intersects } from "semver";

/** More than any language has of one major version. */
const mostMinor = 30;
const rangeCharacters = 100;

/**
 * The newest minor version that a range of Python's or PHP's allows, such as 3.12 of `>=3.9,<3.13`; null when it allows
 * whatever comes of a major version: then it is the usual image's.
 */
export function newestMinor(range: string, majors: readonly number[]): string | null {
  if (range.length > rangeCharacters) return null;
  const semver = inSemver(range);
  for (const major of majors)
    for (let minor = mostMinor; minor >= 0; minor--)
      if (allows(semver, `${major}.${minor}`)) return minor === mostMinor ? null : `${major}.${minor}`;
  return null;
}

/** Python's `~=3.10` and Composer's `|` and `,` have other names there; what a range excludes changes no minor version. */
const inSemver = (range: string): string =>
  range
    .replaceAll(/!=\s*[\w.*]+/g, "")
    .replaceAll(/={2,3}/g, "=")
    .replaceAll(/~=\s*(\d+\.\d+\.)/g, "~$1")
    .replaceAll("~=", "^")
    .replaceAll(",", " ")
    .replaceAll(/\|+/g, "||");

/** Whether a range of npm's allows some release of a version, such as 24 or 3.12; false where it is no range. */
export function allows(range: string, version: string): boolean {
  try {
    return intersects(range, version, { loose: true });
  } catch {
    return false;
  }
}
