/** The last operation of each name. */
const lanes = new Map<string, Promise<unknown>>();

/** Runs the operations of one name one after the other. */
export async function alone<T>(name: string, work: () => Promise<T>): Promise<T> {
  const before = lanes.get(name) ?? Promise.resolve();
  const mine = before.then(work, work);
  lanes.set(name, mine);
  try {
    return await mine;
  } finally {
    if (lanes.get(name) === mine) lanes.delete(name);
  }
}
