/** The backup itself is not what it should be; the message says how. */
export class DamageError extends Error {
  override name = "DamageError";
}
