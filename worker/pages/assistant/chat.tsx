import {
  ChatRequest,
  type ChatPrice,
  type Conversation,
  type ConversationWithMessages,
} from "../../../protocol/api/chat.ts";
import { lookedAt, lookingAt, typed } from "../../../protocol/looking-at.ts";
import { splitAtAddresses } from "../../../protocol/own-addresses.ts";
import { call } from "../../api/call.ts";
import { Act, Button, Form, TextArea } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Callout, Card, Heading, Pager, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";

const credits = (amount: number): string =>
  `${(Math.round(amount * 100) / 100).toLocaleString("en-US")} ${amount === 1 ? "credit" : "credits"}`;

/** What a message costs, before it is sent. */
const Price = ({ price }: { price: ChatPrice }) => (
  <p class="hint">
    {price.leastCredits === price.mostCredits
      ? `A message costs ${credits(price.leastCredits)}.`
      : `A message costs ${price.leastCredits} to ${credits(price.mostCredits)}, depending on what the model reads and writes.`}{" "}
    You have <b data-balance>{credits(price.balance)}</b>.
    {price.model === null &&
      " The operator has not configured a model: the assistant accepts commands. Type help to see them."}
  </p>
);

type Said = ConversationWithMessages["messages"][number];
const Message = ({ said: { role, text, at }, origin }: { said: Said; origin: string }) => (
  <div class={`message ${role}`}>
    <p class="soft small">
      {role === "user" ? "You" : "Assistant"} · <Time at={at} />
    </p>
    <div class="text">
      {splitAtAddresses(typed(text), origin).map((part, index) =>
        index % 2 === 0 ? part : <a href={part}>{part}</a>,
      )}
    </div>
  </div>
);

/** Without a model, messages are commands. */
const commands = (about: string): string[] =>
  about.startsWith("site_")
    ? [`diagnose_site site=${about}`, `get_site_logs site=${about}`, "help"]
    : about.startsWith("db_")
      ? [`get_database db=${about}`, `list_slow_queries db=${about}`, "help"]
      : ["list_unhealthy_resources", "list_sites", "help"];

const questions = (about: string): string[] =>
  about.startsWith("site_") || about.startsWith("dep_")
    ? ["Why did the last deployment fail?", "What is slow?", "Show the errors from the last hour."]
    : about.startsWith("db_")
      ? ["Is my database healthy?", "Which statements are slow?", "When was the last verified backup?"]
      : ["Is everything well?", "What do I pay next, and when?", "What changed in the last day?"];

/** Without a script, a pending action is confirmed by these forms. */
const Pending = ({ id, conversationId }: { id: string; conversationId: string }) => (
  <Callout tone="warn" title="The assistant needs your confirmation">
    <p>
      Its last message says what would happen. Confirm within ten minutes; it then runs once, exactly as
      described.
    </p>
    <div class="buttons">
      <Act
        id="say"
        of="confirm"
        label="Confirm"
        kind="primary"
        values={{ message: "yes", confirm: id, conversationId }}
      />
      <Act
        id="say"
        of="decline"
        label="Decline"
        values={{ message: "No, do not do that.", conversationId }}
      />
    </div>
  </Callout>
);

const History = ({
  conversations,
  current,
}: {
  conversations: readonly Conversation[];
  current: string | undefined;
}) => (
  <Card title="Conversations" end={<a href="/assistant">New</a>}>
    {conversations.length === 0 && <p class="body soft">They are kept for thirty days.</p>}
    <table>
      {conversations.map(({ id, title, updatedAt }) => (
        <tr>
          <td>
            <a
              href={`/assistant?conversation=${id}`}
              {...(id === current && { "aria-current": "true" as const })}
            >
              {title}
            </a>
            <br />
            <span class="soft small">
              <Time at={updatedAt} />
            </span>
          </td>
          <td class="end">
            <Act id="delete" of={id} label="Delete" about={title} kind="ghost" values={{ id }} />
          </td>
        </tr>
      ))}
    </table>
  </Card>
);

const idIn = (about: string | undefined): string => /^[a-z]+_[0-9a-z]+$/.exec(about ?? "")?.[0] ?? "";

/** Conversations with the assistant; as a panel on other pages, its element is shown alone (web/main.ts). */
export const assistant: Screen = {
  path: "/assistant",
  async show({ ctx, query }) {
    const id = query("conversation");
    const about = idIn(query("about"));
    const [price, { data: conversations, nextCursor }, conversation] = await Promise.all([
      call(ctx, "getChatPrice", {}),
      call(ctx, "listConversations", { limit: 20, ...cursorIn(query, "conversation") }),
      id === undefined ? null : call(ctx, "getConversation", { id }),
    ]);
    const told = conversation?.messages.findLast(({ text }) => lookedAt(text) !== undefined)?.text ?? "";
    const isTold = lookedAt(told) === about;
    const examples = (price.model === null ? commands : questions)(about);
    const isPoor = price.balance < price.neededCredits;
    return {
      title: conversation?.title ?? "Assistant",
      ...(conversation && { crumbs: [{ label: "Assistant", href: "/assistant" }] }),
      islands: ["chat"],
      body: (
        <>
          <Heading title="Assistant" />
          <div class="split">
            <berth-chat
              data-conversation={conversation?.id ?? ""}
              data-about={price.model === null || isTold ? "" : about}
            >
              <Card>
                <div class="body">
                  <div class="messages" role="log" aria-label="Conversation">
                    {conversation === null && (
                      <p class="soft">
                        It reads your sites, databases, logs and invoices, explains what failed, and changes
                        what you ask for. Anything that cannot be undone waits for your confirmation.
                      </p>
                    )}
                    {conversation?.messages.map((message) => (
                      <Message said={message} origin={new URL(ctx.config.SITE_URL).origin} />
                    ))}
                  </div>
                  {conversation?.pendingAction && (
                    <Pending id={conversation.pendingAction.id} conversationId={conversation.id} />
                  )}
                  {isPoor && (
                    <Callout tone="warn" title="You have too few credits for a message">
                      <p>
                        A message needs {credits(price.neededCredits)}.{" "}
                        <a href="/billing#credits">Buy credits</a>
                      </p>
                    </Callout>
                  )}
                  <Form id="say">
                    {conversation && <input type="hidden" name="conversationId" value={conversation.id} />}
                    <TextArea
                      name="message"
                      prose
                      label="Message"
                      rows={3}
                      required
                      maxlength={8000}
                      wide
                      placeholder={examples[0] ?? ""}
                    />
                    <div class="row spread form-end">
                      <Price price={price} />
                      <span class="buttons">
                        <button class="needs-script" type="button" data-stop hidden>
                          Stop
                        </button>
                        <Button label="Send" kind="primary" />
                      </span>
                    </div>
                    {conversation === null && (
                      <p class="buttons needs-script">
                        {examples.map((example) => (
                          <button class="ghost" type="button" data-example>
                            {example}
                          </button>
                        ))}
                      </p>
                    )}
                  </Form>
                </div>
              </Card>
            </berth-chat>
            <div class="stack">
              <History conversations={conversations} current={conversation?.id} />
              <Pager
                path={conversation ? `/assistant?conversation=${conversation.id}` : "/assistant"}
                next={nextCursor}
                label="Older conversations"
              />
            </div>
          </div>
        </>
      ),
    };
  },
  forms: {
    async say({ ctx, countMessage, query }, fields) {
      const { message, conversationId, confirm } = fields.read(ChatRequest);
      await countMessage();
      const { model } = await call(ctx, "getChatPrice", {});
      // A command ends where its arguments do.
      const about = model === null || conversationId !== undefined ? "" : idIn(query("about"));
      const reply = await call(ctx, "chat", {
        message: lookingAt(message, about),
        ...(conversationId !== undefined && { conversationId }),
        ...(confirm !== undefined && { confirm }),
      });
      const stored = await call(ctx, "getConversation", { id: reply.conversationId });
      // A secret is in the answer only: it is shown once, and not kept in the conversation.
      const isKept = stored.messages.at(-1)?.text === reply.message;
      return {
        to: `/assistant?conversation=${reply.conversationId}`,
        ...(!isKept && { said: reply.message.slice(0, 2500) }),
      };
    },
    async delete({ ctx }, fields) {
      await call(ctx, "deleteConversation", { id: fields.text("id") });
      return { to: "/assistant", said: "The conversation is deleted." };
    },
  },
};
