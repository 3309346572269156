type Run = { text: string; classes: string };

// oxlint-disable-next-line no-control-regex -- ESC begins a colour
const sgr = /\u001b\[([0-9;]*)m/g;
// oxlint-disable-next-line no-control-regex -- other control characters are not drawn
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** The text without its colours. */
export const uncoloured = (text: string): string =>
  text.replace(sgr, "").replace(unseen, "").replaceAll("\t", "    ");

/** A line with ANSI colours (ECMA-48, SGR) as runs with class names: `a1` to `a7`, `b1` … for bright ones, `bold`, `dim`. */
export function runsOf(text: string): Run[] {
  const runs: Run[] = [];
  let [colour, bold, dim] = ["", false, false];
  let at = 0;
  const push = (part: string) => {
    const seen = part.replace(unseen, "").replaceAll("\t", "    ");
    if (seen !== "")
      runs.push({
        text: seen,
        classes: [colour, bold ? "bold" : "", dim ? "dim" : ""].filter(Boolean).join(" "),
      });
  };
  for (const found of text.matchAll(sgr)) {
    push(text.slice(at, found.index));
    at = found.index + found[0].length;
    const codes = (found[1] ?? "").split(";").map(Number);
    for (let index = 0; index < codes.length; index++) {
      const code = codes[index] ?? 0;
      if (code === 0) [colour, bold, dim] = ["", false, false];
      else if (code === 1) bold = true;
      else if (code === 2) dim = true;
      else if (code === 22) [bold, dim] = [false, false];
      else if (code >= 30 && code <= 37) colour = `a${code - 30}`;
      else if (code >= 90 && code <= 97) colour = `b${code - 90}`;
      else if (code === 39) colour = "";
      else if (code === 38 || code === 48) {
        // 256 colours: the first sixteen are those above; others keep the text's colour.
        if (codes[index + 1] === 5) {
          const wanted = codes[index + 2] ?? 0;
          if (code === 38) colour = wanted < 8 ? `a${wanted}` : wanted < 16 ? `b${wanted - 8}` : "";
          index += 2;
        } else index += 4;
      }
    }
  }
  push(text.slice(at));
  return runs;
}
