import { describe, expect, it } from "vitest";
import * as z from "zod";
import { fieldsFrom, textFields } from "../../cli/pairs.ts";
import { createProgram, everyCommand } from "../../cli/program.ts";
import { operations } from "../../protocol/api/operations.ts";
import { SiteSettings } from "../../protocol/api/sites.ts";

it.each([
  ["22", "22"],
  ["3.10", "3.10"],
  ["true", "true"],
  ["[1]", "[1]"],
  ["null", null],
  ['"22"', "22"],
])("a field that takes text keeps %s as it is typed, unless it is null or a text in quotes", (typed, sent) =>
  expect(fieldsFrom([`languageVersion=${typed}`])).toEqual({ languageVersion: sent }),
);

it("other fields take JSON as such, beside and within those that take text", () => {
  const pairs = ["port=80", "lifecycle.drainSeconds=5", "allow=[]", "seller.vatId=123", "headers.DNT=1"];
  expect(fieldsFrom(pairs)).toEqual({
    port: 80,
    lifecycle: { drainSeconds: 5 },
    allow: [],
    seller: { vatId: "123" },
    headers: { DNT: "1" },
  });
});

type Schema = {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | false;
  anyOf?: Schema[];
};

/** The fields of an object, at every depth, by their own names: whether each takes text, of any form. */
function fieldsOf(schema: Schema, root: Schema = schema): [string, boolean][] {
  if (schema.$ref !== undefined)
    return fieldsOf(root.$defs?.[schema.$ref.split("/").at(-1) ?? ""] ?? {}, root);
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]): [string, boolean][] => {
    const kinds = (field.anyOf ?? [field]).filter(({ type }) => type !== "null");
    const takesText = kinds.every((kind) => kind.type === "string" && kind.enum === undefined);
    const ofAnyName = kinds.flatMap(({ additionalProperties: one }) =>
      one && one.type === "string" ? [[`${name}.*`, true] as [string, boolean]] : [],
    );
    return [[name, takesText], ...ofAnyName, ...kinds.flatMap((kind) => fieldsOf(kind, root))];
  });
  return own;
}

describe("the fields that take text", () => {
  /** What the pairs of each command are fields of. */
  const bodies: Record<string, z.ZodType | undefined> = {
    "sites set": SiteSettings,
    "ingress set": SiteSettings.shape.ingress,
    "billing set": operations.patchBillingDetails.body,
    "accounts set": operations.patchAccount.body,
    "settings set": operations.patchSettings.body,
    "notifications set": operations.patchNotificationChannel.body,
    "hosts set": operations.patchHost.body,
    "packs create": operations.createPack.body,
    "packs set": operations.patchPack.body,
    "credits set-package": operations.patchCreditPackage.body,
  };
  const fields = Object.values(bodies).flatMap((body) =>
    fieldsOf(z.toJSONSchema(body ?? z.never(), { io: "input" }) as Schema),
  );

  it("are those of every command that takes fields", () => {
    const commands = everyCommand(createProgram())
      .filter((one) => one.registeredArguments.some((each) => each.name() === "field=value"))
      .map((one) => `${one.parent?.name()} ${one.name()}`);
    expect(Object.keys(bodies).toSorted()).toEqual(
      commands.filter((name) => name !== "berth api").toSorted(),
    );
  });

  it("are known to the program as the operations' schemas say, and no name takes text here and a number there", () => {
    const texts = new Set(fields.filter(([, takesText]) => takesText).map(([name]) => name));
    expect([...textFields].toSorted()).toEqual([...texts].toSorted());
    expect(fields.filter(([name, takesText]) => !takesText && texts.has(name))).toEqual([]);
  });
});
