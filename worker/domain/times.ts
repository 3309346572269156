export const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

export const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
