const minute = 60_000;
const hour = 60 * minute;

/** The pauses after failed attempts, about as https://www.standardwebhooks.com recommends: two days in all. */
const pausesMs = [minute, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 24 * hour];

/** When to try again after so many attempts; null: it has failed. */
export const nextAttempt = (now: Date, attempts: number): Date | null => {
  const pause = pausesMs[attempts - 1];
  return pause === undefined ? null : new Date(now.getTime() + pause);
};

/** Of an account, through all its channels: more in an hour are not sent. */
export const maxPerHour = 60;
export const maxChannels = 10;
/** Deliveries and occasions are kept this long. */
export const keepDeliveriesDays = 30;
