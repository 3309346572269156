import type { Answer } from "../../client/index.ts";
import { command } from "../command.ts";
import { connect, signal } from "../context.ts";
import { shown } from "../shown.ts";
import { dim, output, print, say } from "../terminal.ts";

export const watch = command("watch", "What changes in your account, as it happens, until Ctrl-C", {
  lines: "change",
}).action(async () => {
  const client = await connect();
  for await (const { event, data } of client.stream("followEvents", {}, { signal })) {
    if (event === "ready") say(dim("Watching; Ctrl-C ends."));
    else if (event === "reset") say(dim("Some changes were missed: the lists show them."));
    else if (event === "change")
      print(output.json ? data : shown(JSON.parse(data) as Answer<"followEvents">).replaceAll("\n", "  "));
  }
});
