/** Stripe's form encoding: `a[b][0]=c` is `{a: {b: {0: "c"}}}`. */
export type Tree = { [name: string]: string | Tree };

export function readForm(text: string): Tree {
  const root: Tree = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.replaceAll("]", "").split("[");
    let at = root;
    for (const step of path.slice(0, -1)) {
      const next = (at[step] ??= {});
      if (typeof next === "string") throw new Refusal(name, `Invalid parameter: ${name}`);
      at = next;
    }
    at[path.at(-1) ?? ""] = value;
  }
  return root;
}

/** Stripe's `invalid_request_error`. */
export class Refusal extends Error {
  readonly param: string;
  readonly code: string | undefined;
  readonly status: number;
  constructor(param: string, message: string, code?: string, status = 400) {
    super(message);
    this.param = param;
    this.code = code;
    this.status = status;
  }
}

/** The schema of a parameter. Unknown parameters are refused, as Stripe does. */
export type Rule =
  | { kind: "string"; required?: true; pattern?: RegExp; oneOf?: readonly string[] }
  | { kind: "integer"; required?: true; min?: number; max?: number }
  | { kind: "boolean"; required?: true }
  | { kind: "metadata"; required?: true }
  | { kind: "list"; required?: true; of: Rule }
  | { kind: "object"; required?: true; fields: Record<string, Rule> };

export function check(value: string | Tree, rule: Rule, name: string): void {
  const refuse = (what: string, code?: string) => {
    throw new Refusal(name, `${what}: ${name}`, code);
  };
  if (rule.kind === "string" || rule.kind === "integer" || rule.kind === "boolean") {
    if (typeof value !== "string") return refuse("Invalid string");
    if (value === "") return refuse("You passed an empty string", "parameter_invalid_empty");
    if (rule.kind === "boolean" && !["true", "false"].includes(value)) return refuse("Invalid boolean");
    if (rule.kind === "integer") {
      if (!/^-?\d+$/.test(value)) return refuse("Invalid integer", "parameter_invalid_integer");
      if (Number(value) < (rule.min ?? -Infinity) || Number(value) > (rule.max ?? Infinity))
        return refuse("Out of range", "parameter_invalid_integer");
    }
    if (rule.kind === "string" && rule.pattern && !rule.pattern.test(value))
      return refuse("Not a valid value");
    if (rule.kind === "string" && rule.oneOf && !rule.oneOf.includes(value)) return refuse("Invalid value");
    return;
  }
  if (typeof value === "string") return refuse(rule.kind === "list" ? "Invalid array" : "Invalid object");
  if (rule.kind === "metadata") {
    if (Object.keys(value).length > 50) return refuse("Too many keys");
    for (const [key, text] of Object.entries(value))
      if (typeof text !== "string" || key.length > 40 || text.length > 500) return refuse("Invalid metadata");
    return;
  }
  if (rule.kind === "list") {
    for (const [index, item] of Object.entries(value)) {
      if (!/^\d+$/.test(index)) return refuse("Invalid array");
      check(item, rule.of, `${name}[${index}]`);
    }
    return;
  }
  const inside = (field: string) => (name === "" ? field : `${name}[${field}]`);
  for (const [field, item] of Object.entries(value)) {
    const known = Object.hasOwn(rule.fields, field) ? rule.fields[field] : undefined;
    if (!known)
      throw new Refusal(inside(field), `Received unknown parameter: ${inside(field)}`, "parameter_unknown");
    check(item, known, inside(field));
  }
  for (const [field, known] of Object.entries(rule.fields))
    if (known.required && value[field] === undefined)
      throw new Refusal(inside(field), `Missing required param: ${inside(field)}.`, "parameter_missing");
}
