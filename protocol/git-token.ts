/** Hosts take a token as the password of any name; where one wants its own, it is given as `name:token`. */
export const gitLogin = (token: string): string => (token.includes(":") ? token : `x-access-token:${token}`);

/** What of it must not be shown: the token is, with its name or alone. */
export const gitSecrets = (token: string): string[] => [
  ...new Set([token, token.slice(token.indexOf(":") + 1)]),
];
