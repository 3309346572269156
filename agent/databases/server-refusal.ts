/** What MariaDB's clients say of its server's refusal, one of them below the statement, which it prints as well. */
const ofMariadb = /^(?:ERROR \d+ \(\w+\)|mariadb-dump: ).*$/gm;
/** What is quoted behind these words is the name of something; whatever else is may be somebody's data. */
const named =
  /\b(?:table|view|column|index|key|function|procedure|trigger|event|sequence|database|engine|collation|variable|definer) \(?'[^']*'(?:@'[^']*')?\)?/gi;
/** Up to the last one, as what is quoted may have quotes itself; one within a word is none. */
const quoted = /(?<!\w)'.*(?:'|$)/;
const shownMax = 300;

/** A database's server or program refused; `reason` may be shown to whoever sees the database's record. */
export class ServerRefusal extends Error {
  override name = "ServerRefusal";
  readonly reason: string;

  /** @param said for the agent's log */
  constructor(reason: string, said = reason) {
    super(said);
    this.reason = reason;
  }
}

/**
 * Why a database's program failed, in one line: without the statement, and without what is quoted of rows, which are to stay on the
 * host. Only here is it known which program speaks, so names can stay. The control plane trusts no host for what it mails or shows to
 * operators: its `reasonWithoutData` looks at all of it once more.
 */
export function refusalIn(stderr: string): string {
  const [own] = stderr.match(ofMariadb)?.slice(-1) ?? [];
  if (own === undefined) return (stderr.trim().split("\n")[0] ?? "").slice(0, shownMax);
  const names: string[] = [];
  const text = own.replace(named, (name) => `\0${names.push(name) - 1}\0`).replace(quoted, "'…'");
  return text.replace(/\0(\d+)\0/g, (_, index: string) => names[Number(index)] ?? "").slice(0, shownMax);
}
