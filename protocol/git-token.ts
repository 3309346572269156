/** Git hosts accept a token as the password of any user; `name:token` names a specific user. */
export const gitLogin = (token: string): string => (token.includes(":") ? token : `x-access-token:${token}`);

/** The parts that must be masked: the token, with and without its user name. */
export const gitSecrets = (token: string): string[] => [
  ...new Set([token, token.slice(token.indexOf(":") + 1)]),
];
