/** A message to a model, with the id of what its author has on screen. */
export const lookingAt = (message: string, about: string): string =>
  about === "" ? message : `${message}\n\n(I am looking at ${about}.)`;

/** The id that a message ends with; undefined: none. */
export const lookedAt = (message: string): string | undefined =>
  /\n\n\(I am looking at ([a-z]+_[0-9a-z]+)\.\)$/.exec(message)?.[1];
