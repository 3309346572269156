/** A text of the API or a host, in the words of pages and mails: they say plan for a pack. */
export const inPlans = (text: string): string =>
  text.replaceAll(/(\bits|\bthe|\bthis|'s|\b[Aa]|\b[Aa]nother|\blarger|\bsmaller) pack\b/g, "$1 plan");
