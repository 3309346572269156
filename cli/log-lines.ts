import type { Answer, ServerEvent } from "../client/index.ts";
import { dim, output, print, safe, styled } from "./terminal.ts";

export type LogLine = Answer<"getDeploymentLogs">["data"][number];

/** The line of an event; null for any other event. */
export const lineOf = ({ event, data }: ServerEvent): LogLine | null =>
  event === "line" ? (JSON.parse(data) as LogLine) : null;

/** A line of a log for people: with its replica if it has one. */
export function lineText(line: LogLine, withTime = false): string {
  const time = withTime ? `${dim(safe(line.at.slice(11, 19)))} ` : "";
  const replica = line.replica === undefined ? "" : `${styled("cyan", `#${line.replica}`)} `;
  const text = safe(line.text);
  return (
    time +
    replica +
    (line.stream === "system"
      ? styled("blue", text)
      : line.stream === "stderr"
        ? styled("yellow", text)
        : text)
  );
}

/** Prints one line: with --json as an object a line. */
export const printLine = (line: LogLine, withTime = false): void =>
  print(output.json ? JSON.stringify(line) : lineText(line, withTime));
