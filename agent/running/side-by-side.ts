/** Runs `work` for all items with limited concurrency; ends with the last one, or at the first error. */
export async function sideBySide<Item>(
  items: Iterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const waiting = [...items].values();
  const workNext = async () => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: concurrency }, workNext));
}
