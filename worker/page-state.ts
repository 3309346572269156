/** What the last form did, said once on the page that it led to. */
export type Flash = {
  tone: "good" | "warn" | "bad";
  text: string;
  /** A value that is shown this once, such as a new key. */
  secret?: string;
};

/** A form that was refused: it is shown again with what was typed, and why. */
export type Refused = {
  /** The form's id. */
  form: string;
  values: Readonly<Record<string, string>>;
  /** By field; a message without one is in `reason`. */
  problems: Readonly<Record<string, string>>;
  reason: string;
};
