/** The first that a user agent names: most name others, too, to be taken for them. */
const browsers = ["Edg", "OPR", "SamsungBrowser", "Firefox", "Chrome", "Safari"];
const systems = ["Android", "iPhone", "iPad", "Windows", "Macintosh", "CrOS", "Linux"];
const called: Readonly<Record<string, string>> = {
  Edg: "Edge",
  OPR: "Opera",
  SamsungBrowser: "Samsung Internet",
  Macintosh: "macOS",
  CrOS: "ChromeOS",
};

const firstIn = (userAgent: string, names: readonly string[]): string | undefined => {
  const found = names.find((name) => userAgent.includes(name));
  return found === undefined ? undefined : (called[found] ?? found);
};

/** "Firefox"; undefined: the user agent names no browser that is known. */
export const browserName = (userAgent: string): string | undefined => firstIn(userAgent, browsers);

/** "Firefox on Windows"; a user agent that names neither as it is written. */
export function browserAndSystem(userAgent: string | null): string {
  if (userAgent === null) return "Unknown browser";
  const [browser, system] = [browserName(userAgent), firstIn(userAgent, systems)];
  return browser === undefined || system === undefined ? userAgent : `${browser} on ${system}`;
}
