import { answered, paged } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { confirmed } from "../../context.ts";
import { listed } from "../../shown.ts";
import { bold, dim, safe, when } from "../../terminal.ts";

const list = paged(
  command("list", "Your conversations with the assistant in the last thirty days", "listConversations"),
).action(({ limit, cursor }) =>
  answered("listConversations", { limit, cursor }, listed("title", "updatedAt", "id")),
);

const showConversation = command("show", "A conversation with its messages", "getConversation")
  .argument("<conversation>", "id")
  .action((id) =>
    answered("getConversation", { id }, ({ messages }) =>
      messages.map(({ role, text, at }) => `${bold(role)} ${dim(when(at))}\n${safe(text)}`).join("\n\n"),
    ),
  );

const rename = command("rename", "Rename a conversation", "patchConversation")
  .argument("<conversation>", "id")
  .argument("<title>")
  .action((id, title) => answered("patchConversation", { id, title }));

const remove = command("delete", "Delete a conversation and its messages", "deleteConversation")
  .argument("<conversation>", "id")
  .action(async (id) => {
    await confirmed(`Delete ${safe(id)}?`);
    await answered("deleteConversation", { id });
  });

const price = command("price", "What a message to the assistant costs now", "getChatPrice").action(() =>
  answered("getChatPrice", {}),
);

export const conversations = group("conversations", "Conversations with the assistant: berth chat", [
  list,
  showConversation,
  rename,
  remove,
  price,
]);
