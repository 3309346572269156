import { parseAst } from "vitest/node";

export type SqlMutant = { file: string; line: number; change: string };
type Node = { type: string; start: number; end: number; [field: string]: unknown };
/** A word, a sign or blanks of a template, or the code between two of its parts. */
type Token = { text: string; at: number; code?: Node };

const clauses = new Set(
  "SELECT FROM WHERE SET ORDER LIMIT GROUP RETURNING UNION JOIN LEFT ON VALUES INSERT UPDATE DELETE WITH WHEN THEN ELSE".split(
    " ",
  ),
);
const instead: Record<string, string> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "<>": "=",
  MIN: "max",
  MAX: "min",
  "+": "-",
  "-": "+",
};
const comparisons: Record<string, string> = {
  eq: "ne",
  ne: "eq",
  lt: "lte",
  lte: "lt",
  gt: "gte",
  gte: "gt",
};

/** In every file, so that each mutant can be switched on while it runs, as those of Stryker can. */
const prelude = `// @ts-nocheck
import * as __drizzle from "drizzle-orm";
const __isOn = (id) => {
  const all = (globalThis.__stryker__ ??= {});
  if (all.activeMutant !== undefined) return all.activeMutant === id;
  const { perTest } = (all.mutantCoverage ??= { static: {}, perTest: {} });
  const hits = (perTest[all.currentTestId] ??= {});
  hits[id] = (hits[id] ?? 0) + 1;
  return false;
};
const __either = (id, own, other) => ({
  shouldOmitSQLParens: () => true,
  getSQL: () => __drizzle.sql\`\${__isOn(id) ? other() : own()}\`,
});
const __text = __drizzle.sql.raw;
`;

/** The same code, in which each condition, comparison and assignment of its SQL can be changed. */
export function mutateSql(source: string, file: string, mutants: Record<string, SqlMutant>): string {
  const name = (at: number, change: string): string => {
    const id = `sql${Object.keys(mutants).length}`;
    mutants[id] = {
      file,
      line: source.slice(0, at).split("\n").length,
      change: change.replaceAll(/\s+/g, " "),
    };
    return JSON.stringify(id);
  };
  const textOf = ({ start, end }: Node) => source.slice(start, end);

  /** The code of this node with what is replaced in it. */
  function codeOf(node: Node): string {
    const own = replacementOf(node);
    if (own !== null) return own;
    let code = "";
    let at = node.start;
    for (const child of childrenOf(node)) {
      if (child.start < at) continue;
      code += source.slice(at, child.start) + codeOf(child);
      at = child.end;
    }
    return code + source.slice(at, node.end);
  }

  function replacementOf(node: Node): string | null {
    if (node.type === "TaggedTemplateExpression" && textOf(node["tag"] as Node) === "sql")
      return templateOf(node);
    if (node.type !== "CallExpression") return null;
    const callee = textOf(node["callee"] as Node);
    const given = node["arguments"] as Node[];
    if (callee === "and") {
      const kept = given.map(
        (one) =>
          `__either(${name(one.start, `without ${textOf(one)}`)}, () => ${codeOf(one)}, () => __text("1"))`,
      );
      return `and(${kept.join(", ")})`;
    }
    const other = comparisons[callee];
    if (other === undefined || given.length !== 2) return null;
    const id = name(node.start, `${other} instead of ${textOf(node)}`);
    const values = given.map((one) => codeOf(one)).join(", ");
    return `__either(${id}, () => ${callee}(${values}), () => __drizzle.${other}(${values}))`;
  }

  function templateOf(node: Node): string {
    const { quasis, expressions } = node["quasi"] as { quasis: Node[]; expressions: Node[] };
    const tokens: Token[] = [];
    for (const [index, part] of quasis.entries()) {
      const { raw } = part["value"] as { raw: string };
      for (const match of raw.matchAll(/\s+|'(?:[^']|'')*'|<>|<=|>=|\|\||[\w.]+|[^]/g))
        tokens.push({ text: match[0], at: part.start + 1 + match.index });
      const code = expressions[index];
      if (code) tokens.push({ text: "", at: code.start, code });
    }
    return `sql\`${emit(0, tokens.length, changesOf(tokens), new Set())}\``;

    function emit(from: number, to: number, changes: Changes, within: ReadonlySet<Range>): string {
      let text = "";
      for (let index = from; index < to;) {
        const range = changes.ranges.find((one) => one.from === index && one.to <= to && !within.has(one));
        const token = tokens[index] as Token;
        const word = changes.words.get(index);
        if (range) {
          const id = name(token.at, `${range.with} instead of ${sqlOf(range.from, range.to)}`);
          const own = emit(range.from, range.to, changes, new Set([...within, range]));
          text += `\${__either(${id}, () => sql\`${own}\`, () => __text(${JSON.stringify(range.with)}))}`;
          index = range.to;
          continue;
        }
        if (word !== undefined) {
          const around = sqlOf(Math.max(from, index - 6), Math.min(to, index + 8));
          const id = name(token.at, `${word || "nothing"} instead of ${token.text} in ${around}`);
          text += `\${__either(${id}, () => __text(${JSON.stringify(token.text)}), () => __text(${JSON.stringify(word)}))}`;
        } else text += token.code ? `\${${codeOf(token.code)}}` : token.text;
        index++;
      }
      return text;
    }
    function sqlOf(from: number, to: number): string {
      return tokens
        .slice(from, to)
        .map(({ text, code }) => (code ? `\${${textOf(code)}}` : text))
        .join("");
    }
  }

  const program = parseAst(source, { lang: "ts" }) as unknown as Node;
  const code = codeOf(program);
  const imports = /^import \{[^}]*\bsql\b[^}]*\} from "drizzle-orm"/m.test(source)
    ? ""
    : `import { sql } from "drizzle-orm";\n`;
  return prelude + imports + source.slice(0, program.start) + code + source.slice(program.end);
}

type Range = { from: number; to: number; with: string };
type Changes = { ranges: Range[]; words: Map<number, string> };

function changesOf(tokens: readonly Token[]): Changes {
  const ranges: Range[] = [];
  const words = new Map<number, string>();
  const upper = tokens.map(({ text }) => text.toUpperCase());
  const isBlank = (index: number) => /^\s/.test(tokens[index]?.text ?? "");
  const next = (index: number) => {
    do index++;
    while (isBlank(index));
    return index;
  };
  const before = (index: number) => {
    do index--;
    while (isBlank(index));
    return index;
  };
  const trimmed = (from: number, to: number): [number, number] => {
    while (from < to && isBlank(from)) from++;
    while (from < to && isBlank(to - 1)) to--;
    return [from, to];
  };

  /** Where what is opened here ends: a parenthesis or a CASE. */
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (const [index, word] of upper.entries())
    if (word === "(" || word === "CASE") open.push(index);
    else if (word === ")" || word === "END") ends.set(open.pop() ?? -1, index);

  const inside = (from: number, to: number): string[] => {
    const found: string[] = [];
    for (let index = from; index < to; index = (ends.get(index) ?? index) + 1) found.push(upper[index] ?? "");
    return found;
  };
  const isLogic = (of: string[]) => of.includes("AND") || of.includes("OR");

  function scan(from: number, to: number, isCondition: boolean): void {
    let mode = isCondition ? "condition" : "value";
    let start = from;
    const close = (end: number) => {
      if (mode === "condition") conditions(start, end);
      if (mode === "assignments") assignments(start, end);
    };
    for (let index = from; index < to; index++) {
      const end = ends.get(index);
      if (end !== undefined) {
        const within = inside(index + 1, end);
        scan(index + 1, end, !clauses.has(upper[next(index)] ?? "") && isLogic(within));
        index = end;
        continue;
      }
      const word = upper[index] ?? "";
      if (!clauses.has(word)) continue;
      close(index);
      start = index + 1;
      const isConditional =
        word === "WHERE" || word === "WHEN" || (word === "ON" && upper[next(index)] !== "CONFLICT");
      mode = isConditional ? "condition" : word === "SET" ? "assignments" : "value";
    }
    close(to);
  }

  /** What AND and OR join. */
  function conditions(from: number, to: number): void {
    const parts: [number, number][] = [];
    const joints: string[] = [];
    let start = from;
    let isBetween = false;
    for (let index = from; index < to; index = (ends.get(index) ?? index) + 1) {
      const word = upper[index] ?? "";
      if (word === "BETWEEN") isBetween = true;
      else if (word === "AND" && isBetween) isBetween = false;
      else if (word === "AND" || word === "OR") {
        parts.push([start, index]);
        joints.push(word);
        start = index + 1;
      }
    }
    parts.push([start, to]);
    for (const [index, part] of parts.entries()) {
      const [first, last] = trimmed(...part);
      if (first >= last || (last - first === 1 && /^(1|true)$/.test(tokens[first]?.text ?? ""))) continue;
      const isAlternative = [joints[index - 1], joints[index]].every(
        (joint) => joint === undefined || joint === "OR",
      );
      ranges.push({ from: first, to: last, with: isAlternative && joints.length > 0 ? "0" : "1" });
    }
  }

  /** `column = value`, and what code may add to them. */
  function assignments(from: number, to: number): void {
    let start = from;
    const one = (end: number) => {
      const [first, last] = trimmed(start, end);
      const sign = next(first);
      const value = next(sign);
      if (upper[sign] === "=" && value < last && tokens[first]?.text)
        ranges.push({ from: value, to: last, with: tokens[first]?.text ?? "" });
      start = end + 1;
    };
    for (let index = from; index < to; index = (ends.get(index) ?? index) + 1) {
      const previous = tokens[before(index)];
      const isAdded =
        tokens[index]?.code &&
        index > start &&
        isBlank(index - 1) &&
        /^$|^[\w.']+$|^\)$/.test(previous?.text ?? "=");
      if (upper[index] === ",") one(index);
      else if (isAdded) {
        one(index);
        start = index + 1;
      }
    }
    one(to);
  }

  const top = inside(0, tokens.length);
  scan(0, tokens.length, !top.some((word) => clauses.has(word)) && isLogic(top));
  for (const [index, word] of upper.entries()) {
    const other = instead[word];
    const isSign = word === "+" || word === "-";
    const isFunction = word === "MIN" || word === "MAX";
    if (
      other !== undefined &&
      (!isSign || (isBlank(index - 1) && isBlank(index + 1))) &&
      (!isFunction || upper[index + 1] === "(")
    )
      words.set(index, other);
    else if (word === "EXISTS" && upper[before(index)] !== "NOT") words.set(index, "NOT EXISTS");
    else if (word === "NOT") words.set(index, "");
    else if (word === "NULL" && upper[before(index)] === "IS") words.set(index, "NOT NULL");
    else if (word.startsWith("'") && /^[(,]$/.test(upper[before(index)] ?? "") && isInList(index))
      words.set(index, "''");
  }
  ranges.sort((a, b) => a.from - b.from || b.to - a.to);
  return { ranges, words };

  function isInList(index: number): boolean {
    const list = [...ends].find(
      ([from, to]) => from < index && index < to && upper[from] === "(" && upper[before(from)] === "IN",
    );
    return list !== undefined;
  }
}

function childrenOf(node: Node): Node[] {
  return Object.entries(node)
    .flatMap(([field, value]) => (field === "parent" ? [] : Array.isArray(value) ? value : [value]))
    .filter(
      (one): one is Node =>
        typeof one === "object" &&
        one !== null &&
        typeof (one as Node).type === "string" &&
        typeof (one as Node).start === "number",
    )
    .toSorted((a, b) => a.start - b.start);
}
