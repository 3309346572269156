type Owner = { uid: number; gid: number };

/**
 * Resolves a container's `user` (`name`, `uid`, `name:group`, `uid:gid`) by its own /etc/passwd and /etc/group, as
 * the engine does; null if a name is not found.
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

/** The line with this name or number. */
function find(text: string, wanted: string): string[] | undefined {
  const lines = text.split("\n").map((line) => line.split(":"));
  return lines.find(([name]) => name === wanted) ?? lines.find(([, , number]) => number === wanted);
}

const numberIn = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
