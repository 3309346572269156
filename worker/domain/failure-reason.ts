const shownMax = 300;

/**
 * Reduces a failure to text that may be mailed and shown to operators. Everything that leaves the owner's own records
 * passes through here, because hosts are not trusted to remove customer data from server output. It cannot interpret
 * the output, so it removes everything in quotes. The hosts' `refusalIn` serves the owner's own records instead.
 */
export const reasonWithoutData = (text: string): string =>
  text
    .replace(/\s+/g, " ")
    .replace(/ ?\b(?:DETAIL|CONTEXT|STATEMENT|QUERY|HINT):.*/, "")
    // A quote inside a word is an apostrophe. Quoted text may itself contain quotes.
    .replace(/(?<!\w)'[^']*(?:'(?!\w)|'.*|$)/g, "'…'")
    .replace(/: "[^"]*(?:"|$)/g, ': "…"')
    .replace(/\)=\([^)]*(?:\)|$)/g, ")=(…)")
    .replace(/[\w+/=]{41,}/g, "…")
    .trim()
    .slice(0, shownMax);
