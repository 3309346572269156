import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import type { Ctx } from "../../ctx.ts";
import { connectionString, usernameOf } from "../../domain/database-engines.ts";
import type { SealedFor } from "../../domain/sealed-places.ts";
import type { DatabaseRow } from "../../db/rows.ts";

export type Login = DatabaseSpec["logins"][number];

/** Where a database's secrets are sealed for; a password keeps its place while it is next, current and previous. */
const placeOf = (row: Pick<DatabaseRow, "id">, generation: number): SealedFor =>
  `databases.password:${row.id}:${generation}`;
const adminPlaceOf = (row: Pick<DatabaseRow, "id">): SealedFor => `databases.admin_password:${row.id}`;

/** Letters and digits only: it stands in addresses as it is. */
const newPassword = (ctx: Ctx): string => Buffer.from(ctx.random(24)).toString("hex");

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

/** The one its owner is shown. */
export const currentLogin = (ctx: Ctx, row: DatabaseRow): Login =>
  loginOf(ctx, row, row.passwordSealed, row.generation);

const nextLogin = (ctx: Ctx, row: DatabaseRow): Login[] =>
  row.nextPasswordSealed === null ? [] : [loginOf(ctx, row, row.nextPasswordSealed, row.generation + 1)];

/** All that may sign in now. */
export const validLogins = (ctx: Ctx, row: DatabaseRow): Login[] => [
  ...loginsToBe(ctx, row),
  ...(row.previousPasswordSealed === null
    ? []
    : [loginOf(ctx, row, row.previousPasswordSealed, row.generation - 1)]),
];

/** What a rotation's job makes of them: the next beside the current one, or the current one alone. */
export const loginsToBe = (ctx: Ctx, row: DatabaseRow): Login[] => [
  currentLogin(ctx, row),
  ...nextLogin(ctx, row),
];

export const addressOf = (ctx: Ctx, row: DatabaseRow): string =>
  connectionString(row, currentLogin(ctx, row));
