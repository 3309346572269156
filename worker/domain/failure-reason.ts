const shownMax = 300;

/**
 * Why something failed, as it may be mailed and shown to operators: names stay, values of rows do not. Hosts leave them
 * out as well; this is for what an older one says.
 */
export const reasonWithoutData = (text: string): string =>
  text
    .replace(/\s+/g, " ")
    .replace(/ ?\b(?:DETAIL|CONTEXT|STATEMENT|QUERY|HINT):.*$/, "")
    // A quote within a word is an apostrophe. What is quoted may have quotes itself.
    .replace(/(?<!\w)'[^']*(?:'(?!\w)|'.*$|$)/g, "'…'")
    .replace(/: "[^"]*(?:"|$)/g, ': "…"')
    .replace(/\)=\([^)]*(?:\)|$)/g, ")=(…)")
    .replace(/[\w+/=]{41,}/g, "…")
    .trim()
    .slice(0, shownMax);
