import type { DBAdapter } from "better-auth";
import type { Ctx } from "../ctx.ts";

type Adapter = Omit<DBAdapter, "transaction">;
type Row = { id: string; secret: string; backupCodes: string };
/** better-auth's own encryption of the secret, whose key does not rotate with ours. */
type Own = { encrypt(plain: string): Promise<string>; decrypt(encrypted: string): Promise<string> };

const model = "twoFactor";

/** better-auth's rows of second steps, with both secrets sealed by our box: rotation reaches them like all others. */
export const sealingTwoFactors = ({ secrets, random }: Pick<Ctx, "secrets" | "random">, own: Own) => {
  async function sealed(data: Partial<Row>, id: string) {
    const { secret, backupCodes, ...rest } = data;
    return {
      ...rest,
      ...(secret !== undefined && {
        secret: secrets.seal(await own.decrypt(secret), `two_factors.secret:${id}`),
      }),
      ...(backupCodes !== undefined && {
        backupCodes: secrets.seal(backupCodes, `two_factors.backup_codes:${id}`),
      }),
    };
  }
  const opened = async (row: Row) => ({
    ...row,
    secret: await own.encrypt(secrets.open(row.secret, `two_factors.secret:${row.id}`)),
    backupCodes: secrets.open(row.backupCodes, `two_factors.backup_codes:${row.id}`),
  });
  return <Wrapped extends Adapter>(adapter: Wrapped): Wrapped => ({
    ...adapter,
    async create(input) {
      if (input.model !== model) return adapter.create(input);
      const id = Buffer.from(random(16)).toString("base64url");
      const data = { ...(await sealed(input.data, id)), id };
      return opened(await adapter.create({ ...input, data, forceAllowId: true })) as never;
    },
    async findOne(input) {
      const row = await adapter.findOne(input);
      return (row && input.model === model ? await opened(row as Row) : row) as never;
    },
    async update(input) {
      if (input.model !== model) return adapter.update(input);
      const row = await adapter.update({ ...input, update: await sealed(input.update, idIn(input.where)) });
      return (row && (await opened(row as Row))) as never;
    },
    async incrementOne(input) {
      if (input.model !== model) return adapter.incrementOne(input);
      const id = idIn(input.where);
      const current = await adapter.findOne<Row>({ model, where: [{ field: "id", value: id }] });
      const told = input.where.find(({ field }) => field === "backupCodes");
      if (!current || (told && told.value !== (await opened(current)).backupCodes)) return null;
      const row = await adapter.incrementOne({
        ...input,
        where: input.where.map((one) => (one === told ? { ...one, value: current.backupCodes } : one)),
        set: await sealed(input.set ?? {}, id),
      });
      return (row && (await opened(row as Row))) as never;
    },
  });
};

function idIn(where: readonly { field: string; value: unknown }[]): string {
  const id = where.find(({ field }) => field === "id")?.value;
  return typeof id === "string" ? id : "";
}
