import { maxResultBytes } from "../../../protocol/api/insight.ts";
import { StatementError, tooLarge, type Answered } from "./place.ts";

/** As it is sent, in a list. */
const bytesOf = (value: unknown[]): number => Buffer.byteLength(JSON.stringify(value)) + 1;

/** Collects rows up to a count and a size; the server may send more. */
export class Rows {
  readonly rows: unknown[][] = [];
  truncated = false;
  private readonly limit: number;
  private readonly isWrite: boolean;
  private bytes = 0;

  /** `isWrite`: the statement has taken effect, so what does not fit is left out instead of refused. */
  constructor(limit: number, isWrite = false) {
    this.limit = limit;
    this.isWrite = isWrite;
  }

  /** @returns false if this row exceeds a limit. @throws StatementError if not even the first row of what reads fits */
  add(row: unknown[]): boolean {
    if (this.truncated) return false;
    const size = bytesOf(row);
    if (this.rows.length === 0 && size > maxResultBytes && !this.isWrite) throw tooLarge();
    if (this.rows.length === this.limit || this.bytes + size > maxResultBytes) {
      this.truncated = true;
      return false;
    }
    this.bytes += size;
    this.rows.push(row);
    return true;
  }

  /** @throws StatementError if not even the columns of what reads fit */
  answer(columns: Answered["columns"], affectedRows: number | null): Answered {
    const room = maxResultBytes - bytesOf(columns);
    if (room < 0 && this.isWrite) return { columns: [], rows: [], truncated: true, affectedRows };
    if (room < 0)
      throw new StatementError(
        "The names of the result's columns are larger than 960 KiB: select fewer of them.",
      );
    for (let row; this.bytes > room && (row = this.rows.pop()); this.bytes -= bytesOf(row))
      this.truncated = true;
    return { columns, rows: this.rows, truncated: this.truncated, affectedRows };
  }
}

/** A number if JSON represents it exactly, otherwise its digits. */
export function exactNumber(text: string): number | string {
  const number = Number(text);
  const exact = Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number);
  return exact ? number : text;
}

export const binary = (bytes: Buffer): { base64: string } => ({ base64: bytes.toString("base64") });

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes valid UTF-8; anything else becomes base64. */
export function textOrBinary(bytes: Buffer): string | { base64: string } {
  try {
    return utf8.decode(bytes);
  } catch {
    return binary(bytes);
  }
}
