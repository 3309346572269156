import type { Answer, Input, OperationId } from "../client/index.ts";
import { whole, type command } from "./command.ts";
import { connect, connection, signal } from "./context.ts";
import { shown } from "./shown.ts";
import { show } from "./terminal.ts";

/** Calls an operation and prints its answer. */
export async function answered<Id extends OperationId, const Given extends Input<Id>>(
  id: Id,
  input: Given,
  human: (answer: Answer<Id, Given>) => string = (answer) => shown(answer as object),
): Promise<void> {
  const client = await connect();
  show(id, await client.call(id, input, { signal }), human);
}

/** A change of a pack, with the address where it is paid if it has to be. */
export const packChanged = (change: object): string =>
  shown(
    "invoiceToken" in change && typeof change.invoiceToken === "string"
      ? { ...change, paymentUrl: `${connection().url}/invoice/${change.invoiceToken}` }
      : change,
  );

/** A command that prints one page of a list. */
export const paged = (made: ReturnType<typeof command>, limit = 50) =>
  made
    .option("--limit <n>", "how many", whole, limit)
    .option("--cursor <cursor>", "the next page: nextCursor from the previous one");
