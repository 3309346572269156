const shownMax = 300;

/**
 * Why something failed, as it may be mailed and shown to operators. All that leaves the owner's own records passes here, so no host is
 * trusted for it: not an older one, and not for a server's last lines or a damage, which hosts pass on as they are. It knows no program,
 * so it drops everything quoted. Hosts' `refusalIn` stands beside it, for the owner's records.
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
