/** Of a message, in characters. */
export const maxMessageLength = 8000;

/** A message to a model, with the id of what its author has on screen, if there is room for it. */
export const lookingAt = (message: string, about: string): string =>
  about === "" || message.length > maxMessageLength - 100
    ? message
    : `${message}\n\n(I am looking at ${about}.)`;

const ending = /\n\n\(I am looking at ([a-z]+_[0-9a-z]+)\.\)$/;

/** The id that a message ends with; undefined: none. */
export const lookedAt = (message: string): string | undefined => ending.exec(message)?.[1];

/** The message as its author typed it. */
export const typed = (message: string): string => message.replace(ending, "");
