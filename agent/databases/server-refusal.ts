/** MariaDB's error lines; one client prints them after the statement. */
const ofMariadb = /^(?:ERROR \d+ \(\w+\)|mariadb-dump: ).*$/gm;
/** The first error of PostgreSQL's programs, before which they may print warnings and what they were doing. */
const ofPostgresql = /^(?:[\w:<>]+: )?(?:error|ERROR|FATAL): .*$/m;
/** A quotation after these words is an object's name; any other may be customer data. */
const named =
  /\b(?:table|view|column|index|key|function|procedure|trigger|event|sequence|database|engine|collation|variable|definer) \(?'[^']*'(?:@'[^']*')?\)?/gi;
/** Up to the last quote, because quoted text may contain quotes; one within a word does not count. */
const quoted = /(?<!\w)'.*(?:'|$)/;
const shownMax = 300;

/** A database's server or program refused; `reason` may be shown to anyone who sees the database's record. */
export class ServerRefusal extends Error {
  override name = "ServerRefusal";
  readonly reason: string;

  /** @param logText the text for the agent's log */
  constructor(reason: string, logText: string) {
    super(logText);
    this.reason = reason;
  }
}

/**
 * Why a database's program failed, in one line: without the statement, and without quoted row data, which must stay
 * on the host. Only here is it known which program reported, so names can be kept. The control plane does not trust
 * hosts and filters the result again (`reasonWithoutData`).
 */
export function refusalIn(stderr: string): string {
  const [own] = stderr.match(ofMariadb)?.slice(-1) ?? [];
  if (own === undefined)
    return (ofPostgresql.exec(stderr)?.[0] ?? stderr.trim().split("\n")[0] ?? "").slice(0, shownMax);
  const names: string[] = [];
  const text = own.replace(named, (name) => `\0${names.push(name) - 1}\0`).replace(quoted, "'…'");
  return text.replace(/\0(\d+)\0/g, (_, index: string) => names[Number(index)] ?? "").slice(0, shownMax);
}
