/** Where a browser finds the rules, named by a header of every page (HTML, "Speculation-Rules"). */
export const prefetchRulesPath = "/prefetch.json";

const below = ["sites", "databases", "deployments", "activity", "billing", "account", "operator", "docs"];

/**
 * Pages that a browser may ask for while a link is still being pressed. Only ones without a query: that is where values are
 * revealed and logs are streamed. Nothing that is about to be approved, paid or downloaded. Asked for on hovering already, a page
 * that says what is going on would be older than its reader thinks.
 */
export const prefetchRules = {
  prefetch: [
    {
      where: {
        href_matches: ["/", ...below.map((name) => `/${name}{/*}?`)].map((pathname) => ({
          pathname,
          search: "",
        })),
      },
      eagerness: "conservative",
    },
  ],
};
