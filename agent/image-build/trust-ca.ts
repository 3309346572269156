import { parseInstructions } from "../../protocol/dockerfile.ts";

export const caSecretId = "berth_ca";

/** What clients in a build read the trusted certificates from. */
const variables = [
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "PIP_CERT",
  "REQUESTS_CA_BUNDLE",
  "BUNDLE_SSL_CA_CERT",
  "CARGO_HTTP_CAINFO",
];

/**
 * The same Dockerfile, whose RUN steps also trust the operator's certificates: mounted as a secret and named by build-time
 * arguments, so that nothing of it stays in the image.
 */
export function trustCa(dockerfile: string): string {
  const { directives, instructions } = parseInstructions(dockerfile);
  const args = variables.map((name) => `ARG ${name}=/run/secrets/${caSecretId}`);
  return [
    ...directives,
    ...instructions.flatMap(({ keyword, text }) => {
      if (keyword === "FROM") return [text, ...args];
      if (keyword === "RUN") return [text.replace(/^(\s*RUN)\b/i, `$1 --mount=type=secret,id=${caSecretId}`)];
      return [text];
    }),
    "",
  ].join("\n");
}
