import { localDay } from "./days.ts";

const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
/** "Yesterday" and "tomorrow" are days of the calendar, not 24 hours. */
const dayWords = new Intl.RelativeTimeFormat("en", { numeric: "always" });
const units = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
] as const;

/** How long ago it was, or in how long it will be; beyond 30 days its day. The server and the browser say the same, up to the reader's time zone. */
export function ago(at: string, nowMs: number): string {
  const seconds = Math.round((Date.parse(at) - nowMs) / 1000);
  const [unit, length] = units.find(([, least]) => Math.abs(seconds) >= least) ?? ["second", 1];
  if (Math.abs(seconds) > 30 * 86_400) return localDay(at);
  return (unit === "day" ? dayWords : words).format(Math.trunc(seconds / length), unit);
}
