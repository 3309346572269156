/** A text in parts: every other one, from the second on, is an address at this origin. */
export function splitAtAddresses(text: string, origin: string): string[] {
  const literal = origin.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return text.split(new RegExp(String.raw`(${literal}\/(?:[\w\-./?=&%#~:]*[\w\-/=])?)`));
}
