import { and, asc, eq, gt, or } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { ledgerTransfers } from "../../db/schema.ts";
import { listActivity } from "../activity/list.ts";
import { getBillingDetails } from "../billing-details/change.ts";
import { listBackups } from "../backups/list.ts";
import { listConversations } from "../chat/conversations.ts";
import { listCommands } from "../commands/list.ts";
import { listDatabases } from "../databases/list.ts";
import { listDeployments } from "../deployments/list.ts";
import { listInvoices } from "../invoices/list.ts";
import { listKeys } from "../keys/list.ts";
import { listChannels, listDeliveries } from "../notifications/list.ts";
import { everyItem } from "../page.ts";
import { listSchedules } from "../schedules/list.ts";
import { listSites } from "../sites/list.ts";
import { getAccount } from "./get.ts";
import { listSessions } from "./list-sessions.ts";

const atOnce = 100;
type Query = { limit: number; cursor?: string };
type Lister = (ctx: Ctx, query: Query) => Promise<Page<{ id: string }>>;

const listed: Record<string, Lister> = {
  databases: listDatabases,
  backups: listBackups,
  invoices: listInvoices,
  keys: listKeys,
  sessions: listSessions,
  notificationChannels: listChannels,
  notificationDeliveries: listDeliveries,
  activity: listActivity,
};

/**
 * All data of the account as one JSON document, page by page, by the same code as the API's lists: what these do not show
 * (secret variables, tokens, passwords) is not in it. Logs and the files of backups are downloaded by themselves.
 */
export async function exportAccount(ctx: Ctx): Promise<ReadableStream<Uint8Array>> {
  // What is refused is refused before the answer begins.
  const account = await getAccount(ctx);
  const parts = documentOf(ctx, account, await getBillingDetails(ctx));
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: () => void parts.return(undefined),
  });
}

async function* documentOf(
  ctx: Ctx,
  account: object,
  billingDetails: object,
): AsyncGenerator<string, undefined> {
  yield `{"exportedAt":${JSON.stringify(ctx.now().toISOString())},\n"account":${JSON.stringify(account)}`;
  yield `,\n"billingDetails":${JSON.stringify(billingDetails)}`;
  yield* array("sites", sitesOf(ctx));
  for (const [name, lister] of Object.entries(listed)) yield* array(name, all(ctx, lister));
  yield* array("conversations", conversationsOf(ctx));
  yield* array("transactions", transactionsOf(ctx));
  yield "}\n";
}

async function* array(name: string, items: AsyncIterable<object>): AsyncGenerator<string> {
  yield `,\n${JSON.stringify(name)}:[`;
  let isFirst = true;
  for await (const item of items) {
    yield `${isFirst ? "\n" : ",\n"}${JSON.stringify(item)}`;
    isFirst = false;
  }
  yield "]";
}

const all = <Item>(ctx: Ctx, lister: (ctx: Ctx, query: Query) => Promise<Page<Item>>): AsyncGenerator<Item> =>
  everyItem((cursor) => lister(ctx, { limit: atOnce, ...(cursor !== undefined && { cursor }) }));

const collected = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
};

async function* sitesOf(ctx: Ctx): AsyncGenerator<object> {
  for await (const site of all(ctx, listSites)) {
    const { id } = site;
    yield {
      ...site,
      deployments: await collected(all(ctx, (acting, query) => listDeployments(acting, { id, ...query }))),
      schedules: await collected(all(ctx, (acting, query) => listSchedules(acting, { id, ...query }))),
      commands: await collected(all(ctx, (acting, query) => listCommands(acting, { id, ...query }))),
    };
  }
}

async function* conversationsOf(ctx: Ctx): AsyncGenerator<object> {
  for await (const conversation of all(ctx, listConversations)) {
    const history = await ctx.conversations.history(conversation.id as `conv_${string}`, accountOf(ctx));
    yield { ...conversation, messages: "messages" in history ? history.messages : [] };
  }
}

async function* transactionsOf(ctx: Ctx): AsyncGenerator<object> {
  const id = accountOf(ctx);
  for (let after = 0; ;) {
    const rows = await ctx.db
      .select()
      .from(ledgerTransfers)
      .where(
        and(
          or(eq(ledgerTransfers.creditId, id), eq(ledgerTransfers.debitId, id)),
          gt(ledgerTransfers.seq, after),
        ),
      )
      .orderBy(asc(ledgerTransfers.seq))
      .limit(atOnce);
    for (const row of rows)
      yield {
        id: row.id,
        type: row.type,
        amount: row.creditId === id ? row.amount : -row.amount,
        createdAt: row.createdAt.toISOString(),
      };
    if (rows.length < atOnce) return;
    after = rows.at(-1)?.seq ?? after;
  }
}
