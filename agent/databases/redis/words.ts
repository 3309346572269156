const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\u0007" };

/**
 * Splits a command into words as redis-cli does; quoted words may contain anything. null: a quote is not closed, or
 * text follows it without a space.
 */
export function wordsOf(line: string): Buffer[] | null {
  const words: Buffer[] = [];
  for (let at = 0; ;) {
    while (/\s/.test(line.charAt(at))) at++;
    if (at >= line.length) return words;
    const parts: Buffer[] = [];
    let text = "";
    let quote = "";
    let isFirst = true;
    for (; ; at++) {
      const char = line.charAt(at);
      if (char === "") {
        if (quote) return null;
        break;
      }
      if (quote) {
        const hex = /^\\x([0-9a-f]{2})/i.exec(line.slice(at, at + 4))?.[1];
        if (quote === '"' && hex !== undefined) {
          parts.push(Buffer.from(text), Buffer.from(hex, "hex"));
          text = "";
          at += 3;
        } else if (char === "\\" && (quote === '"' || line.charAt(at + 1) === "'")) {
          const escaped = line.charAt(++at);
          text += quote === '"' ? (escapes[escaped] ?? escaped) : escaped;
        } else if (char === quote) {
          const after = line.charAt(at + 1);
          if (after !== "" && !/\s/.test(after)) return null;
          at++;
          break;
        } else text += char;
      } else if (/\s/.test(char)) break;
      else if ((char === '"' || char === "'") && isFirst) quote = char;
      else text += char;
      isFirst = false;
    }
    words.push(Buffer.concat([...parts, Buffer.from(text)]));
  }
}
