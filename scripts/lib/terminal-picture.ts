import { spawn } from "node:child_process";
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

/** What a line shows at the end: what was there before a return of the carriage or an erased line is gone. */
const atTheEnd = (line: string): string =>
  line
    // oxlint-disable-next-line no-control-regex -- It is what an erased line begins with.
    .split(/\r|\u001b\[2K/)
    .filter((text) => text !== "")
    .at(-1) ?? "";

/** As wide as most terminals that people open on a desk. */
const usualColumns = 108;

/**
 * Runs a shell command in a terminal of its own, as a person would see it, and answers what it shows.
 *
 * @param onOutput gets all of the output so far, after each part of it
 * @throws Error if it fails
 */
export async function typedInTerminal(
  command: string,
  {
    cwd,
    env,
    onOutput,
    columns = usualColumns,
  }: { cwd: string; env: NodeJS.ProcessEnv; onOutput?: (text: string) => void; columns?: number },
): Promise<string> {
  const line = `stty cols ${columns} rows 60; ${command}`;
  const child = spawn("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"], {
    cwd,
    env: { ...env, TERM: "xterm-256color" },
    // Without an end of its input, which would be typed as Ctrl-D.
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    output += part;
    onOutput?.(output);
  });
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${command} exited with ${String(code)}: ${output}`);
  return output.replaceAll("\r\n", "\n").split("\n").map(atTheEnd).join("\n").trimEnd();
}

/** A page that looks like a terminal in which these commands were typed, each with what it showed. */
export function terminalPage(typed: readonly { command: string; output: string }[], fontCss: string): string {
  const text = typed.map(
    ({ command, output }) => `<b class="prompt">$</b> <b>${escaped(command)}</b>\n${htmlOf(output)}`,
  );
  return `<!doctype html><meta charset="utf-8"><style>
    ${fontCss}
    body { margin: 0; padding: 28px; background: #ffffff; width: max-content; }
    .window { background: #0d1117; border-radius: 10px; overflow: hidden; }
    .bar { height: 34px; background: #161b22; display: flex; gap: 8px; align-items: center; padding-left: 14px; }
    .bar i { width: 12px; height: 12px; border-radius: 50%; background: #30363d; }
    .prompt { color: #7ee787; }
    pre { margin: 0; padding: 20px 24px 24px; width: ${usualColumns}ch; color: #e6edf3;
      font: 15px/1.5 "JetBrains Mono Variable", "DejaVu Sans Mono", monospace; font-variant-ligatures: none; white-space: pre-wrap; overflow-wrap: anywhere; }
  </style><div class="window"><div class="bar"><i></i><i></i><i></i></div><pre>${text.join("\n\n")}</pre></div>`;
}
