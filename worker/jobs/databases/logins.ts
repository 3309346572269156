import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import type { Ctx } from "../../ctx.ts";
import { connectionString, usernameOf } from "../../domain/database-engines.ts";
import type { SealedFor } from "../../domain/sealed-places.ts";
import type { DatabaseRow } from "../../db/rows.ts";

type Login = DatabaseSpec["logins"][number];

/** The name a database's password is sealed for; a password keeps it while it is next, current and previous. */
const placeOf = (row: Pick<DatabaseRow, "id">, generation: number): SealedFor =>
  `databases.password:${row.id}:${generation}`;
const adminPlaceOf = (row: Pick<DatabaseRow, "id">): SealedFor => `databases.admin_password:${row.id}`;

/** Hexadecimal, so that it needs no escaping in addresses. */
export const newPassword = (ctx: Ctx): string => Buffer.from(ctx.random(24)).toString("hex");

export const sealNewPassword = (ctx: Ctx, row: Pick<DatabaseRow, "id">, generation: number): string =>
  ctx.secrets.seal(newPassword(ctx), placeOf(row, generation));
export const sealAdminPassword = (ctx: Ctx, row: Pick<DatabaseRow, "id">): string =>
  ctx.secrets.seal(newPassword(ctx), adminPlaceOf(row));
export const openAdminPassword = (ctx: Ctx, row: DatabaseRow): string =>
  ctx.secrets.open(row.adminPasswordSealed, adminPlaceOf(row));

const loginOf = (ctx: Ctx, row: DatabaseRow, sealed: string, generation: number): Login => ({
  username: usernameOf(row.databaseName, generation),
  password: ctx.secrets.open(sealed, placeOf(row, generation)),
});

/** The login shown to the owner. */
export const currentLogin = (ctx: Ctx, row: DatabaseRow): Login =>
  loginOf(ctx, row, row.passwordSealed, row.generation);

const nextLogin = (ctx: Ctx, row: DatabaseRow): Login[] =>
  row.nextPasswordSealed === null ? [] : [loginOf(ctx, row, row.nextPasswordSealed, row.generation + 1)];

/** Every login that is valid now. */
export const validLogins = (ctx: Ctx, row: DatabaseRow): Login[] => [
  ...loginsToBe(ctx, row),
  ...(row.previousPasswordSealed === null
    ? []
    : [loginOf(ctx, row, row.previousPasswordSealed, row.generation - 1)]),
];

/** The logins that are valid after a rotation's job: the current and the next one, or the current one alone. */
export const loginsToBe = (ctx: Ctx, row: DatabaseRow): Login[] => [
  currentLogin(ctx, row),
  ...nextLogin(ctx, row),
];

export const addressOf = (ctx: Ctx, row: DatabaseRow): string =>
  connectionString(row, currentLogin(ctx, row));
