import { execFileSync } from "node:child_process";
import { stripVTControlCharacters } from "node:util";

const colors: Record<string, string> = {
  "31": "#ff7b72",
  "32": "#7ee787",
  "33": "#e3b341",
  "34": "#79c0ff",
  "36": "#76e3ea",
};

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Text with the colours of a terminal (SGR, ECMA-48 section 8.3.117) as HTML. */
function htmlOf(text: string): string {
  let [isBold, isDim, isUnderlined, color] = [false, false, false, ""];
  // oxlint-disable-next-line no-control-regex -- It is what colours begin with.
  const parts = text.split(/\u001b\[([\d;]*)m/);
  return parts
    .map((part, index) => {
      if (index % 2 === 0) {
        const style = [
          color === "" ? "" : `color:${color}`,
          isBold ? "font-weight:700" : "",
          isDim ? "opacity:.6" : "",
          isUnderlined ? "text-decoration:underline" : "",
        ].filter(Boolean);
        return `<span style="${style.join(";")}">${escaped(stripVTControlCharacters(part))}</span>`;
      }
      for (const code of part.split(";")) {
        if (code === "0" || code === "") [isBold, isDim, isUnderlined, color] = [false, false, false, ""];
        else if (code === "1") isBold = true;
        else if (code === "2") isDim = true;
        else if (code === "4") isUnderlined = true;
        else if (code === "22") [isBold, isDim] = [false, false];
        else if (code === "24") isUnderlined = false;
        else if (code === "39") color = "";
        else color = colors[code] ?? color;
      }
      return "";
    })
    .join("");
}

/** A page that looks like a terminal in which these commands of `berth` were just typed. */
export function terminalPage(program: string, commands: string[][], env: Record<string, string>): string {
  const typed = commands.map((args) => {
    const output = execFileSync(process.execPath, [program, ...args], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], FORCE_COLOR: "1", ...env },
    });
    return `<b style="color:#7ee787">$</b> berth ${escaped(args.join(" "))}\n${htmlOf(output)}`;
  });
  return `<!doctype html><meta charset="utf-8"><style>
    body { margin: 0; padding: 28px; background: #0d1117; width: max-content; }
    pre { margin: 0; color: #e6edf3; font: 15px/1.5 "JetBrains Mono Variable", "DejaVu Sans Mono", monospace; }
  </style><pre>${typed.join("\n")}</pre>`;
}
