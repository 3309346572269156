import type { Answer, Client } from "../../client/index.ts";
import { command } from "../command.ts";
import { ask, connect, nextCommand, signal, standardInput } from "../context.ts";
import { Failure, usage } from "../failure.ts";
import { dim, output, print, safe, say, show, spin, styled } from "../terminal.ts";

export const chat = command("chat", "Talk to the assistant: one message, a pipe, or a conversation", "chat")
  .argument("[message...]", "default: standard input, or a conversation in the terminal")
  .option("--conversation <id>", "go on with this one")
  .action(async (words, options) => {
    const client = await connect();
    let conversationId = options.conversation;
    const isTalk = words.length === 0 && output.isInteractive && !output.json;
    let message =
      words.length > 0 ? words.join(" ") : isTalk ? await ask("> ") : (await standardInput()).trim();
    if (message === "" && !isTalk) throw usage("There is no message.", "Give one, or pipe one in.");
    if (isTalk) say(dim("End with Ctrl-C or an empty line."));
    for (;;) {
      if (message.trim() === "") return;
      let reply = await sent(client, { message, conversationId });
      ({ conversationId } = reply);
      while (reply.pendingAction !== null && output.isInteractive && !output.json) {
        const { id, summary } = reply.pendingAction;
        const answer = await ask(`${styled("yellow", safe(summary))}\nDo it? Type yes: `);
        if (answer.trim().toLowerCase() !== "yes") {
          say("Not done.");
          break;
        }
        reply = await sent(client, { message: "yes", conversationId, confirm: id });
      }
      if (output.json) show("chat", reply, () => "");
      if (reply.pendingAction !== null && !output.isInteractive)
        say(
          `It asks to confirm: ${safe(reply.pendingAction.summary)}\nConfirm with: ${nextCommand(`chat --conversation ${conversationId} yes`, null)}`,
        );
      say(
        dim(`${reply.creditsUsed} credit${reply.creditsUsed === 1 ? "" : "s"} used, ${reply.balance} left`),
      );
      if (!isTalk) return;
      message = await ask("> ");
    }
  });

type Reply = Answer<"chat">;

/** Sends a message and prints the answer as it is written; after a cut, says where it is found. */
async function sent(
  client: Client,
  input: { message: string; conversationId: string | undefined; confirm?: string },
): Promise<Reply> {
  const { ApiError, NetworkError } = await import("../../client/index.ts");
  const spinner = spin("thinking …");
  let isWriting = false;
  let text = "";
  let begun: string | undefined;
  try {
    for await (const { event, data } of client.stream("chatStream", input, {
      signal,
      end: ["done", "error"],
    })) {
      const value = JSON.parse(data) as {
        conversationId?: string;
        text?: string;
        tool?: string;
        error?: string;
        reason?: string;
      };
      if (event === "conversation") begun = value.conversationId;
      else if (event === "delta" && value.text !== undefined) {
        spinner.stop();
        isWriting = true;
        text += value.text;
        if (!output.json) process.stdout.write(safe(value.text));
      } else if (event === "tool" && value.tool !== undefined && !isWriting)
        spinner.say(`${safe(value.tool)} …`);
      else if (event === "error")
        throw value.error === "payment_required"
          ? new ApiError("payment_required", 402, value)
          : new ApiError("server_error", 500, {
              reason: value.reason ?? `The assistant failed: ${value.error ?? "unknown"}`,
            });
      else if (event === "done") {
        spinner.stop();
        const reply = JSON.parse(data) as Reply;
        // What was not streamed, such as a value that is shown once, or all where it went another way.
        const rest = reply.message.startsWith(text) ? reply.message.slice(text.length) : `\n${reply.message}`;
        if (!output.json) print(safe(rest));
        return reply;
      }
    }
    throw new NetworkError("The answer ended early.", { mayBeDone: true });
  } catch (error) {
    if (begun === undefined || !(error instanceof NetworkError)) throw error;
    throw new Failure(error.message, {
      hint: `It is completed all the same: ${nextCommand(`conversations show ${safe(begun)}`, null)}`,
    });
  } finally {
    spinner.stop();
  }
}
