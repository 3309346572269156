import * as z from "zod";

const types: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};
const formats: Record<string, string> = {
  date: "a date such as 2026-01-31",
  datetime: "a time such as 2026-01-31T12:00:00Z",
  email: "an email address",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  url: "a URL",
};
const units: Record<string, [one: string, many: string]> = {
  array: ["entry", "entries"],
  map: ["entry", "entries"],
  set: ["entry", "entries"],
  string: ["character", "characters"],
};

/** A body may have thousands of fields that are not known. */
const mostNamed = 20;

const listed = (values: readonly unknown[]): string =>
  values.map((value) => JSON.stringify(value) ?? String(value)).join(", ");

function counted(count: number | bigint, origin: string): string {
  const [one, many] = units[origin] ?? [];
  if (many === undefined) return String(count);
  return `${count} ${Number(count) === 1 ? one : many}`;
}

/** What is wrong with a value, without its name: for people who do not know the schema's library. */
function messageOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "required";
      return `must be ${types[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return issue.values.length === 1
        ? `must be ${listed(issue.values)}`
        : `must be one of ${listed(issue.values)}`;
    case "invalid_union":
      return Array.isArray(issue.options) && issue.options.length > 0
        ? `must be one of ${listed(issue.options)}`
        : "not valid";
    case "too_small":
      if (issue.exact) return `must have exactly ${counted(issue.minimum, issue.origin)}`;
      if (issue.origin in units)
        return Number(issue.minimum) === 1
          ? "must not be empty"
          : `must have at least ${counted(issue.minimum, issue.origin)}`;
      return `must be ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      if (issue.exact) return `must have exactly ${counted(issue.maximum, issue.origin)}`;
      if (issue.origin in units) return `must have at most ${counted(issue.maximum, issue.origin)}`;
      return `must be ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return formats[issue.format] === undefined
        ? "not in the expected form"
        : `must be ${formats[issue.format]}`;
    case "unrecognized_keys": {
      const more = issue.keys.length - mostNamed;
      const named = listed(issue.keys.slice(0, mostNamed));
      return `unknown ${issue.keys.length === 1 ? "field" : "fields"} ${named}${more > 0 ? ` and ${more} more` : ""}`;
    }
    case "invalid_key":
    case "invalid_element":
    case "custom":
      return "not valid";
  }
}

z.config({ localeError: messageOf });
