/** The backup itself is damaged; the message says how. */
export class DamageError extends Error {
  override name = "DamageError";
}
