/** What apps lack at their first start that came up elsewhere, by what one of their lines tells. */
const known: [signs: RegExp[], advice: string][] = [
  [
    [/Missing `secret_key_base`|Missing encryption key to decrypt|MessageEncryptor::InvalidMessage/],
    "set the variable RAILS_MASTER_KEY to what config/master.key holds, or SECRET_KEY_BASE to a long random text where there is none",
  ],
  [
    [/\bSECRET_KEY\b/, /ImproperlyConfigured|KeyError|UndefinedValueError/],
    "set the variable that Django's settings read SECRET_KEY from to a long random text",
  ],
  [
    [/must set settings\.ALLOWED_HOSTS/],
    "name the site's addresses in ALLOWED_HOSTS of Django's settings, or let them be read from a variable",
  ],
  [
    // Releases of better-sqlite3 before 13, with Node 24.19 and later.
    [/node::RemoveEnvironmentCleanupHook/],
    "a package made of C++ does not fit this release of Node: take the package's newest one, or name another Node in .nvmrc, such as 22",
  ],
  [
    [/127\.0\.0\.1|::1\b|localhost/, /refused/i],
    "it looks for another server, such as its database, inside its own container: set the variable that names its address, such as DATABASE_URL",
  ],
];

export const exitAdvice = (lines: readonly string[]): string =>
  known.find(([signs]) => lines.some((line) => signs.every((sign) => sign.test(line))))?.[1] ??
  "mend it or its start command";
