/** Of a message, in characters. */
export const maxMessageLength = 8000;

/** A message to a model, with the id of what its author has on screen, if there is room for it. */
export const lookingAt = (message: string, about: string): string =>
  about === "" || message.length > maxMessageLength - 100
    ? message
    : `${message}\n\n(I am looking at ${about}.)`;

/** The id that a message ends with; undefined: none. */
export const lookedAt = (message: string): string | undefined =>
  /\n\n\(I am looking at ([a-z]+_[0-9a-z]+)\.\)$/.exec(message)?.[1];
