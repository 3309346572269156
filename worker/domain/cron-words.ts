import { listed } from "./listed.ts";

const monthNames =
  "January February March April May June July August September October November December".split(" ");
const dayNames = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

const predefined: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** The values that a field of an accepted expression matches, in order. */
function valuesOf(field: string, low: number, high: number, names: readonly string[] = []): number[] {
  const number = (text: string): number => {
    const named = names.findIndex((name) => name.slice(0, 3).toLowerCase() === text.toLowerCase());
    return named === -1 ? Number(text) : named + low;
  };
  const values = field.split(",").flatMap((part) => {
    const [range = "", step] = part.split("/");
    // At the end of a range, Sunday is the seventh day.
    const [from = "", to] = range.replace("-sun", "-7").split("-");
    const first = from === "*" ? low : number(from);
    const last = to !== undefined ? number(to) : from === "*" || step !== undefined ? high : first;
    const every = Number(step ?? 1);
    return Array.from(
      { length: Math.floor((last - first) / every) + 1 },
      (_, index) => first + index * every,
    );
  });
  return [...new Set(values)].toSorted((a, b) => a - b);
}

const two = (value: number): string => String(value).padStart(2, "0");
const isRun = (values: readonly number[]): boolean =>
  values.length > 2 && values.every((value, index) => value === (values[0] ?? 0) + index);
/** The distance of values that repeat evenly within `size`; null: they do not. */
function stepOf(values: readonly number[], size: number): number | null {
  const step = (values[1] ?? 0) - (values[0] ?? 0);
  return values.length > 2 &&
    values.length * step === size &&
    values.every((value, index) => value === (values[0] ?? 0) + index * step)
    ? step
    : null;
}

const hoursWords = (hours: readonly number[]): string =>
  hours.length === 1 || isRun(hours)
    ? ` from ${two(hours[0] ?? 0)}:00 to ${two(hours.at(-1) ?? 0)}:59 UTC`
    : ` in the hours ${listed(hours.map(two))} UTC`;

/** `isOften`: it is a rhythm within the day, which the days follow; else times, which follow the days. */
function timeWords(minutes: readonly number[], hours: readonly number[]): { isOften: boolean; text: string } {
  const step = stepOf(minutes, 60);
  const within = hours.length === 24 ? "" : hoursWords(hours);
  if (step !== null) {
    const rhythm = step === 1 ? "every minute" : `every ${step} minutes`;
    const start = minutes[0] === 0 ? "" : `, from minute ${minutes[0]} on`;
    return { isOften: true, text: `${rhythm}${start}${within}` };
  }
  const [minute = 0] = minutes;
  const hourStep = stepOf(hours, 24);
  if (minutes.length === 1 && hourStep !== null) {
    const rhythm = hourStep === 1 ? "every hour" : `every ${hourStep} hours`;
    const start =
      hourStep === 1 ? ` at minute ${minute}` : ` from ${two(hours[0] ?? 0)}:${two(minute)} UTC on`;
    return {
      isOften: true,
      text: hourStep === 1 && minute === 0 ? `${rhythm}, on the hour` : rhythm + start,
    };
  }
  if (hours.length * minutes.length > 6)
    return {
      isOften: true,
      text: `at ${minutes.length === 1 ? "minute" : "minutes"} ${listed(minutes)} of every hour${within}`,
    };
  const times = hours.flatMap((hour) => minutes.map((one) => `${two(hour)}:${two(one)}`));
  return { isOften: false, text: `at ${listed(times)} UTC` };
}

const weekdayWords = (days: readonly number[]): string =>
  isRun(days)
    ? `${dayNames[days[0] ?? 0]} to ${dayNames[days.at(-1) ?? 0]}`
    : `every ${listed(days.map((day) => dayNames[day] ?? ""))}`;

/**
 * When a valid cron expression (cron.ts) runs, in words: `every day at 03:30 UTC`. Where days of the month and of the week are
 * both named, either will do.
 */
export function cronWords(expression: string): string {
  const text = expression.trim().toLowerCase();
  const [minute = "", hour = "", date = "", month = "", weekday = ""] = (predefined[text] ?? text).split(
    /\s+/,
  );
  const dates = valuesOf(date, 1, 31);
  const weekdays = [...new Set(valuesOf(weekday, 0, 7, dayNames).map((day) => day % 7))].toSorted(
    (a, b) => a - b,
  );
  const months = valuesOf(month, 1, 12, monthNames);
  const { isOften, text: time } = timeWords(valuesOf(minute, 0, 59), valuesOf(hour, 0, 23));
  const names = months.map((one) => monthNames[one - 1] ?? "");
  const inMonths = isRun(months) ? `${names[0]} to ${names.at(-1)}` : listed(names);
  const isEveryDay =
    (date === "*" && weekday === "*") ||
    (date !== "*" && dates.length === 31) ||
    (weekday !== "*" && weekdays.length === 7);
  const dateWords = `on ${dates.length === 1 ? "day" : "the days"} ${listed(dates)} of ${months.length === 12 ? "each month" : inMonths}`;
  const byWeek = `${weekdayWords(weekdays)}${months.length === 12 ? "" : ` in ${inMonths}`}`;
  const days = isEveryDay
    ? months.length === 12
      ? isOften
        ? ""
        : "every day"
      : `every day in ${inMonths}`
    : [date !== "*" && dateWords, weekday !== "*" && byWeek].filter(Boolean).join(" and ");
  const words = isOften ? [time, days].filter(Boolean).join(", ") : `${days} ${time}`;
  return words.charAt(0).toUpperCase() + words.slice(1);
}
