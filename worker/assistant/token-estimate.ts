/**
 * Pieces as byte-pair encoders of models cut text before they merge: a word, capitals, digits, spaces, line ends, signs,
 * and anything else by itself.
 */
const pieces = /\p{Lu}?\p{Ll}+|\p{Lu}+|\d+|[^\S\n]+|\n+|[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]+|./gsu;
const consonants = /[^aeiouy]{4}/i;
const longestWord = 14;

function tokensIn(piece: string): number {
  const code = piece.codePointAt(0) ?? 0;
  // Cyrillic, Greek and accented letters merge into words; Chinese and Japanese hardly, and what is rare takes its bytes.
  if (code > 0x7ff) return piece.length * 2;
  if (code > 0x7f) return piece.length;
  if (/^[A-Z]{2}/.test(piece)) return Math.ceil(piece.length / 1.6);
  if (/^[a-z]/i.test(piece))
    return Math.ceil(piece.length / (piece.length > longestWord || consonants.test(piece) ? 1.8 : 4.5));
  if (/^\d/.test(piece)) return Math.ceil(piece.length / 3);
  // One space belongs to the word that it precedes.
  if (/^\s/.test(piece)) return piece.length === 1 ? 0.2 : 1 + piece.length / 20;
  return Math.ceil(piece.length / 1.4);
}

/**
 * How many tokens a text takes, on the safe side for the encodings o200k and cl100k: half as much again for English, up to five
 * times for other scripts. Their own tables weigh more than the rest of the Worker (1.1 MB of gzip), and other models have others.
 */
export function tokenEstimate(text: string): number {
  let tokens = 0;
  for (const [piece] of text.matchAll(pieces)) tokens += tokensIn(piece);
  return Math.ceil(tokens * 1.15);
}

/** So many characters of a text: its beginning, and its end, which is what counts in a log. */
export const withoutMiddle = (text: string, length: number): string =>
  `${text.slice(0, Math.ceil(length * 0.7))} […] ${text.slice(text.length - Math.floor(length * 0.3))}`.toWellFormed();

export const cutNote = (length: number, of: number): string =>
  `Cut to ${length} of ${of} characters at […]: ask for less.`;

/** The beginning and the end of a text, with a mark in between, of at most so many tokens. */
export function cutTo(text: string, maxTokens: number): string {
  if (tokenEstimate(text) <= maxTokens) return text;
  let [fits, tooLong] = [0, text.length];
  const cut = (length: number) => withoutMiddle(text, length);
  while (tooLong - fits > 16) {
    const middle = (fits + tooLong) >> 1;
    if (tokenEstimate(cut(middle)) <= maxTokens) fits = middle;
    else tooLong = middle;
  }
  return cut(fits);
}
