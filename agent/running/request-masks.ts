import { plain } from "../../protocol/redact.ts";

const mask = "•••";

/** Names of parameters whose values are secrets: as whole words, so that `keyword` and `monkey` are none. */
const words =
  "token|secret|password|passwd|passphrase|pwd|pass|key|apikey|accesskey|signature|sig|sign|hmac|hash|code|otp|pin|auth|authorization|oauth|bearer|jwt|session|sessionid|sid|credential|credentials|assertion|ticket|nonce|state|invite|access|refresh|private|email|mail|phone|ssn|cvv|card";
const secretName = new RegExp(`(?:^|[^a-z0-9])(?:${words})s?(?:[^a-z0-9]|$)`, "i");
/** Also in one word: `accessToken`, `PHPSESSID`. */
const secretPart = /token|secret|passw|apikey|api_key|signature|sess(?:ion)?id|credential/i;

/** What keys of common services, JWTs (RFC 7519) and random values look like, whatever their parameter is called. */
const secretValue =
  /^(?:eyJ[\w-]{8,}\.[\w-]+|(?:sk|pk|rk|whsec|ghp|gho|ghs|github_pat|glpat|xox[abprs]|shp\w\w|npm|dop_v1|hf|AKIA|ASIA|AIza|ya29)[_.-]?[\w-]{12,})/;
const randomValue = /^(?=.*\d)(?=.*[A-Za-z])[\w~.+/=-]{32,}$/;

/** Longer ones are cut before anything is looked for in them. */
const maxReadCharacters = 4096;

const decoded = (text: string): string => {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
};
const split = (name: string): string => name.replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2");

const isSecretName = (name: string): boolean => secretName.test(split(name)) || secretPart.test(name);
const isSecretValue = (value: string): boolean => secretValue.test(value) || randomValue.test(value);

/** The query with the values of parameters masked that are secrets by their names or their form. */
export function maskQuery(query: string): string {
  return query
    .slice(0, maxReadCharacters)
    .split(/([&;])/)
    .map((part) => {
      const at = part.indexOf("=");
      if (at < 0) return isSecretValue(decoded(part)) ? mask : part;
      const [name, value] = [part.slice(0, at), part.slice(at + 1)];
      if (value === "" || !(isSecretName(decoded(name)) || isSecretValue(decoded(value)))) return part;
      return `${name}=${mask}`;
    })
    .join("");
}

/** Segments that are keys or JWTs. Random ones are ids as a rule, and stay. */
export const maskPath = (path: string): string =>
  path
    .slice(0, maxReadCharacters)
    .split("/")
    .map((segment) => (secretValue.test(decoded(segment)) ? mask : segment))
    .join("/");

/** The address of the page that led here, without what may be secret in it: user, query and fragment. */
export const maskReferrer = (referrer: string): string =>
  maskPath(
    referrer
      .slice(0, maxReadCharacters)
      .replace(/[?#].*$/s, "")
      .replace(/^([\w+.-]+:\/\/)[^/]*@/, "$1"),
  );

/** Text of a visitor's as it may be kept: without control characters, and not longer than this. */
export const kept = (text: string, maxCharacters: number): string =>
  plain(text.slice(0, maxReadCharacters))
    .replaceAll(/[\t\n\r]/g, " ")
    .slice(0, maxCharacters)
    .toWellFormed();
