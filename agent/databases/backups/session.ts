import { refusalIn, ServerRefusal } from "../server-refusal.ts";
import type { Piped } from "../../docker/engine.ts";

/** A database client that stays open: statements in, lines out. Results must not contain line breaks. */
export class Session {
  private readonly piped: Piped;
  private readonly say: (word: string) => string;
  private readonly lines: AsyncGenerator<string>;
  private asked = 0;

  /** @param say returns the statement that prints this word on a line of its own */
  constructor(piped: Piped, say: (word: string) => string) {
    this.piped = piped;
    this.say = say;
    this.lines = linesOf(piped.output);
  }

  /** @throws if the client ends, which it does at the first error */
  async ask(statements: string): Promise<string[]> {
    const end = `berth-${++this.asked}`;
    this.piped.input.write(`${statements}\n${this.say(end)}\n`);
    const found: string[] = [];
    for (;;) {
      const { value, done } = await this.lines.next();
      if (done) {
        const { stderr } = await this.piped.ended();
        const reason = refusalIn(stderr);
        throw new ServerRefusal(reason, `The database's client ended: ${reason}`);
      }
      if (value === end) return found;
      found.push(value);
    }
  }

  /** Closes the input; the open transaction ends with it. */
  async end(): Promise<void> {
    this.piped.input.end();
    for await (const _ of this.lines);
    await this.piped.ended();
  }

  close(): void {
    this.piped.close();
  }
}

async function* linesOf(output: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of output) {
    rest = Buffer.concat([rest, chunk]);
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
      yield rest.subarray(0, at).toString();
      rest = rest.subarray(at + 1);
    }
  }
}
