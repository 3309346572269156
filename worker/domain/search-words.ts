/** What a search asks for, beside its text. */
type SearchWords = {
  /** In lower case. */
  text: string;
  /** The beginning of a commit: all that are at least `from` and below `to`. */
  commit: { from: string; to: string } | null;
  /** A deployment's number, and a part of its site's name; empty: of any site. */
  deployment: { number: number; site: string } | null;
};

/** `g` is the first letter that is no hexadecimal digit. */
const commitOf = (text: string) => (/^[0-9a-f]{4,64}$/.test(text) ? { from: text, to: `${text}g` } : null);

function deploymentOf(text: string): SearchWords["deployment"] {
  const [, site = "", sign = "", digits = ""] = /^(.*?)\s*(#?)(\d{1,9})$/.exec(text) ?? [];
  if (digits === "" || (site !== "" && sign === "")) return null;
  return { number: Number(digits), site };
}

export const searchWords = (query: string): SearchWords => {
  const text = query.trim().toLowerCase();
  return { text, commit: commitOf(text), deployment: deploymentOf(text) };
};
