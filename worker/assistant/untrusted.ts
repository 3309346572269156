/** Of one tool's result in a prompt. */
const maxResultLength = 6000;

/** Passwords in addresses, and keys of ours, wherever they come from: a log, a row, a commit message. */
const masked = (text: string): string =>
  text
    .replaceAll(/(:\/\/[^\s:@/"]{1,200}):[^\s@/"]{1,400}@/g, "$1:…@")
    .replaceAll(/\bsk_[0-9A-Za-z]{8,}/g, "sk_…");

/**
 * A tool's result for the model: data of others' making, marked as such, cut to a budget, without secrets. Whatever it says, it is
 * not an instruction: the person's messages are.
 */
export function untrusted(result: unknown): string {
  const text = masked(JSON.stringify(result) ?? "null");
  const cut = text.length > maxResultLength;
  return JSON.stringify({
    untrusted_data: cut ? text.slice(0, maxResultLength) : text,
    ...(cut && { note: `Cut after ${maxResultLength} of ${text.length} characters: ask for less.` }),
  });
}
