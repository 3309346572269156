const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A day in UTC, as nobody can misread it: 25 Dec 2026. */
export const day = (iso: string): string =>
  `${Number(iso.slice(8, 10))} ${months[Number(iso.slice(5, 7)) - 1] ?? ""} ${iso.slice(0, 4)}`;

/** As it would be in ISO 8601 if the time zone of this machine were UTC, as that of the service is. */
function local(at: string): string {
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
}

/** The day in the reader's time zone, where a browser says it. */
export const localDay = (at: string): string => day(local(at));

/** The time in the reader's time zone: 25 Dec 2026, 15:04:05. */
export function localTime(at: string, precision?: "to the minute"): string {
  const time = local(at);
  return `${day(time)}, ${time.slice(11, precision ? 16 : 19)}`;
}
