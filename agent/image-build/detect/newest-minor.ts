/**
 * The newest minor version that a range of Python's or PHP's allows, such as 3.12 of `>=3.9,<3.13`; null when it allows
 * whatever comes: then it is the usual image's.
 */
export function newestMinor(range: string): string | null {
  const only = /^\s*(?:v|={1,3}|~=?)?\s*(\d\.\d{1,2})(?:\.[\d*x]+)?\s*$/.exec(range)?.[1];
  if (only !== undefined) return only;
  const [, included, major, limit] = /<(=?)\s*(\d)\.(\d{1,2})(?:\.0)?(?![.\d])/.exec(range) ?? [];
  const minor = Number(limit) - (included === "=" ? 0 : 1);
  return limit === undefined || minor < 0 ? null : `${major}.${minor}`;
}
