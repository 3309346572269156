import { command } from "../command.ts";
import { connect } from "../context.ts";
import { exitCodes, usage } from "../failure.ts";
import { siteId } from "../site.ts";
import { dim, say } from "../terminal.ts";
import { shellLine } from "./exec.ts";
import type { Stream } from "../stream.ts";

/** Ctrl-], as telnet has it: a person can leave whatever the other end does. */
const leaveByte = 0x1d;

export const terminal = command(
  "terminal",
  "A shell in the running site, beside the app; exits as that shell does",
  null,
)
  .argument("[command...]", "one line for sh instead, after --: berth terminal -- rails console")
  .action(async (words) => {
    const { stdin, stdout } = process;
    if (!stdin.isTTY || !stdout.isTTY)
      throw usage(
        "This is not a terminal, so there is nobody to type.",
        "Run a command without one: berth exec -- <command>",
      );
    const client = await connect();
    const id = await siteId(client);
    const { openStream } = await import("../stream.ts");
    const name = process.env["TERM"] ?? "";
    const query = new URLSearchParams({
      columns: String(stdout.columns || 80),
      rows: String(stdout.rows || 24),
      ...(/^[\w.+-]{1,40}$/.test(name) && { terminal: name }),
      ...(words.length > 0 && { command: shellLine(words) }),
    }).toString();
    const stream = await openStream(`/sites/${id}/terminal?${query}`, {
      write: (bytes) =>
        new Promise((resolve, reject) => stdout.write(bytes, (error) => (error ? reject(error) : resolve()))),
    });
    say(dim("Connected; Ctrl-] leaves."));
    process.exitCode = (await typeInto(stream)).exitCode ?? exitCodes.failure;
  });

async function typeInto(stream: Stream): Promise<{ exitCode: number | null }> {
  const { stdin, stdout } = process;
  const resize = () => stream.resize(stdout.columns, stdout.rows);
  const type = (bytes: Buffer) => {
    if (bytes.includes(leaveByte)) return stream.close();
    // What a person types never fills the window; what is pasted waits.
    stdin.pause();
    void stream.send(bytes).then(() => stdin.resume());
  };
  stdin.setRawMode(true);
  stdin.on("data", type);
  stdout.on("resize", resize);
  try {
    return await stream.ended;
  } finally {
    stdin.setRawMode(false);
    stdin.off("data", type).pause();
    stdout.off("resize", resize);
  }
}
