class Crash extends Error {
  override name = "Crash";
}

/** A crash at the n-th round trip to D1: before it arrives, or after it was done and before anybody heard. */
export type CrashPoint = { roundTrip: number; when: "before" | "after" } | null;

export function crashingDatabase(database: D1Database, point: CrashPoint): D1Database {
  let roundTrips = 0;
  let isOver = false;
  return through(database, async (act) => {
    if (isOver) throw new Crash("It is over");
    const isHere = point !== null && roundTrips++ === point.roundTrip;
    if (isHere) isOver = true;
    if (isHere && point.when === "before") throw new Crash("Before");
    const answer = await act();
    if (isHere) throw new Crash("After");
    return answer;
  });
}

/** Something else is done just before the n-th round trip to D1, as by another request. */
export function interruptedDatabase(
  database: D1Database,
  roundTrip: number,
  first: () => Promise<unknown>,
): D1Database {
  let roundTrips = 0;
  return through(database, async (act) => {
    if (roundTrips++ === roundTrip) await first();
    return act();
  });
}

type Pass = <T>(act: () => Promise<T>) => Promise<T>;

function through(database: D1Database, pass: Pass): D1Database {
  const targets = new WeakMap<object, D1PreparedStatement>();
  const statement = (target: D1PreparedStatement): D1PreparedStatement => {
    const wrapped = {
      bind: (...values: unknown[]) => statement(target.bind(...values)),
      ...Object.fromEntries(
        (["all", "run", "first", "raw"] as const).map((name) => [
          name,
          (...args: never[]) => pass(() => Reflect.apply(target[name], target, args) as Promise<unknown>),
        ]),
      ),
    } as unknown as D1PreparedStatement;
    targets.set(wrapped, target);
    return wrapped;
  };
  return {
    prepare: (sql: string) => statement(database.prepare(sql)),
    batch: (list: D1PreparedStatement[]) =>
      pass(() => database.batch(list.map((one) => targets.get(one) ?? one))),
  } as D1Database;
}
