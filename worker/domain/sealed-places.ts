/**
 * Every place that stores sealed values. Values are sealed for these places only, and services/secrets/rotate.ts
 * re-seals all of them.
 */
export const sealedPlaces = [
  "sites.git_token",
  "sites.registry_password",
  "site_env",
  "databases.admin_password",
  "databases.password",
  "idempotent_requests",
  "acme_accounts",
  "peer_authorities",
  "certificates.key",
  "certificates.order_key",
  "notification_channels.url",
  "notification_channels.secret",
] as const;
export type SealedPlace = (typeof sealedPlaces)[number];

/** The place and row that a value is sealed for; opening it for any other fails. A flash lives in a cookie for a minute. */
export type SealedFor = `${SealedPlace}:${string}` | `flash:${string}`;
