export type Owner = { uid: number; gid: number };

/**
 * Whom a container's `user` means, by its own /etc/passwd and /etc/group, as the engine reads them: `name`, `uid`,
 * `name:group`, `uid:gid`. null where a name is not to be found.
 */
export function ownerOf(user: string, passwd: string, group: string): Owner | null {
  const [who = "", ofGroup] = user.split(":");
  if (who === "") return { uid: 0, gid: 0 };
  const entry = find(passwd, who);
  const uid = entry ? Number(entry[2]) : numberIn(who);
  const gid =
    ofGroup === undefined
      ? Number(entry?.[3] ?? 0)
      : (numberIn(find(group, ofGroup)?.[2]) ?? numberIn(ofGroup));
  return uid === null || gid === null ? null : { uid, gid };
}

/** The line whose name, or number where a number is asked for, is this. */
function find(text: string, wanted: string): string[] | undefined {
  const lines = text.split("\n").map((line) => line.split(":"));
  return lines.find(([name]) => name === wanted) ?? lines.find(([, , number]) => number === wanted);
}

const numberIn = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
