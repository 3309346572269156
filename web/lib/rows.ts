const tabColumns = 8;
const wide = /[\u2e80-\ud7ff\uf900-\uffef]/;

/** How many rows of `columns` letters a line of a log takes: it may have line breaks, tabs, and letters that are two columns wide. */
export function rowsOf(text: string, columns: number): number {
  if (/^[ -~]*$/.test(text)) return Math.max(1, Math.ceil(text.length / columns));
  let rows = 0;
  for (const part of text.split("\n")) {
    rows++;
    let at = 0;
    // By code units: letters of two are two columns wide.
    for (const letter of part.split("")) {
      const next = at + (letter === "\t" ? tabColumns - (at % tabColumns) : wide.test(letter) ? 2 : 1);
      if (next <= columns) at = next;
      else {
        rows++;
        at = letter === "\t" ? tabColumns : wide.test(letter) ? 2 : 1;
      }
    }
  }
  return rows;
}
