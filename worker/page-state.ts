/** What the last form did, said once on the page that it led to. */
export type Flash = {
  tone: "good" | "warn" | "bad";
  text: string;
  /** A value that is shown this once, such as a new key. */
  secret?: string;
};

/** A form that is shown again with what was typed: it was refused, or (`reason` null) it only asked something. */
export type Refused = {
  /** The form's id. */
  form: string;
  values: Readonly<Record<string, string>>;
  /** By field; a message without one is in `reason`. */
  problems: Readonly<Record<string, string>>;
  reason: string | null;
};
