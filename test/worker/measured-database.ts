type Cost = { sql: string; rowsRead: number };

/** D1 that writes down how many rows each statement read: the same at every run, unlike time. */
export function measuredDatabase(database: D1Database): { db: D1Database; costs: Cost[] } {
  const costs: Cost[] = [];
  const targets = new WeakMap<object, { target: D1PreparedStatement; sql: string }>();
  const noted = <T>(sql: string, answer: D1Result<T>): D1Result<T> => {
    costs.push({ sql: sql.replaceAll(/\s+/g, " ").trim(), rowsRead: answer.meta.rows_read });
    return answer;
  };
  const statement = (target: D1PreparedStatement, sql: string): D1PreparedStatement => {
    const all = async () => noted(sql, await target.all());
    const wrapped = {
      bind: (...values: unknown[]) => statement(target.bind(...values), sql),
      all,
      run: all,
      raw: async () => (await all()).results.map((row) => Object.values(row as object)),
    } as unknown as D1PreparedStatement;
    targets.set(wrapped, { target, sql });
    return wrapped;
  };
  const db = {
    prepare: (sql: string) => statement(database.prepare(sql), sql),
    batch: async (list: D1PreparedStatement[]) => {
      const known = list.map((one) => targets.get(one) ?? { target: one, sql: "" });
      const answers = await database.batch(known.map(({ target }) => target));
      return answers.map((answer, index) => noted(known[index]?.sql ?? "", answer));
    },
  } as D1Database;
  return { db, costs };
}
