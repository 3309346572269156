/** Every place where sealed values lie: nothing is sealed for another, and services/secrets/rotate.ts re-seals all of them. */
export const sealedPlaces = [
  "sites.git_token",
  "sites.registry_password",
  "site_env",
  "databases.admin_password",
  "databases.password",
  "idempotent_requests",
] as const;
export type SealedPlace = (typeof sealedPlaces)[number];

/** The place and the row that a value is sealed for; opened for any other, it is refused. */
export type SealedFor = `${SealedPlace}:${string}`;
