import type { Child } from "hono/jsx";
import * as z from "zod";
import {
  CreditPackageCreate,
  CreditPackagePatch,
  type CreditPackageForOperator,
} from "../../../protocol/api/credits.ts";
import { PackCreate, PackPatch, type PackForOperator } from "../../../protocol/api/packs.ts";
import { billingTermsMonths } from "../../../protocol/states.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Check, Field, Form, Select, Submit, typedInto } from "../kit/form.tsx";
import { allOf } from "../kit/paging.ts";
import { Card, Empty, Status } from "../kit/parts.tsx";
import { monthsOf, packText } from "../kit/plans.tsx";
import type { Fields, Screen } from "../kit/screen.ts";
import { money } from "../money.ts";
import { operatorFrame } from "./frame.tsx";

const path = "/operator/plans";
const decimal = (value: number): string => String(Math.round(value * 1000) / 1000);
const cents = (amountCents: number): string => (amountCents / 100).toFixed(2);

/** A sum as people type it: 5, 5.5 or 5,50. @throws AppError invalid_request */
function centsIn(fields: Fields): number {
  const typed = fields.text("amount").trim().replace(",", ".");
  if (!/^\d{1,7}(\.\d{1,2})?$/.test(typed)) throw invalid("amount", "an amount such as 5 or 12.50");
  return Math.round(Number(typed) * 100);
}

/** @throws AppError invalid_request */
function packIn(fields: Fields) {
  const amountCents = centsIn(fields);
  const cores = Number(fields.text("cores").trim().replace(",", "."));
  if (!(cores >= 0.05 && cores <= 256)) throw invalid("cores", "a number from 0.05 to 256");
  const discounts = Object.fromEntries(
    billingTermsMonths.flatMap((months) => {
      const typed = fields.text(`discount${months}`).trim();
      return typed === "" ? [] : [[String(months), Number(typed)]];
    }),
  );
  return {
    name: fields.text("name"),
    amountCents,
    discounts,
    memoryMb: Number(fields.text("memoryMb")),
    cpuMilli: Math.round(cores * 1000),
    pids: Number(fields.text("pids")),
    diskGb: Number(fields.text("diskGb")),
    active: fields.text("active") === "true",
  };
}

type Offered = { name: string; amountCents: number; currency: string; active: boolean };

const NameField = ({ of }: { of: Offered | undefined }) => (
  <Field name="name" prose label="Name" value={of?.name} required maxlength={100} />
);

const AmountField = ({ of, label }: { of: Offered | undefined; label: string }) => (
  <Field
    name="amount"
    label={`${label} in ${(of?.currency ?? "usd").toUpperCase()}`}
    value={of && cents(of.amountCents)}
    required
    placeholder="5.00"
    maxlength={10}
  />
);

const ActiveField = ({ of }: { of: Offered | undefined }) => (
  <Check name="active" label="On offer" checked={of?.active ?? true} />
);

const PackFields = ({ pack }: { pack?: PackForOperator }) => (
  <>
    <div class="columns">
      <NameField of={pack} />
      <AmountField of={pack} label="Price a month" />
      <Field
        name="memoryMb"
        type="number"
        label="Memory in MB"
        value={pack && String(pack.memoryMb)}
        required
        min={64}
        max={1_048_576}
      />
      <Field
        name="cores"
        label="Processor cores"
        value={pack && decimal(pack.cpuMilli / 1000)}
        required
        placeholder="0.5"
        maxlength={8}
      />
      <Field
        name="diskGb"
        type="number"
        label="Disk in GB"
        value={pack && String(pack.diskGb)}
        required
        min={1}
        max={65_536}
      />
      <Field
        name="pids"
        type="number"
        label="Processes"
        value={String(pack?.pids ?? 512)}
        required
        min={16}
        max={65_536}
      />
      {billingTermsMonths.map((months) => (
        <Field
          name={`discount${months}`}
          type="number"
          label={`Discount for ${monthsOf(months)} in %`}
          value={String(pack?.terms.find((term) => term.months === months)?.discountPercent || "")}
          placeholder="0"
          min={0}
          max={90}
        />
      ))}
    </div>
    <ActiveField of={pack} />
  </>
);

const Offer = ({ active, isDefault = false }: { active: boolean; isDefault?: boolean }) => (
  <>
    <Status {...(active ? { tone: "good", label: "On offer" } : { tone: "soft", label: "Not on offer" })} />{" "}
    {isDefault && <span class="chip">default</span>}
  </>
);

/** One thing on sale, and in a fold the form that changes it. */
const OfferRow = ({
  offered: { id, name, amountCents, currency, active },
  form,
  isDefault,
  per = "",
  texts,
  note,
  children,
}: {
  offered: Offered & { id: string };
  form: string;
  isDefault?: boolean;
  per?: string;
  texts: readonly string[];
  note: string;
  children: Child;
}) => (
  <tr>
    <td>
      <div class="row spread">
        <span class="row">
          <strong>{name}</strong> <Offer active={active} isDefault={isDefault ?? false} />
        </span>
        <span>
          {money(amountCents, currency)}
          {per}
        </span>
      </div>
      {texts.map((text) => (
        <div class="soft small">{text}</div>
      ))}
      <details id={`change-${id}`} open={typedInto(`${form}:${id}`) !== undefined}>
        <summary class="small" aria-label={`Change: ${name}`}>
          Change
        </summary>
        <p class="soft small">{note}</p>
        <Form id={form} of={id}>
          <input type="hidden" name="id" value={id} />
          {children}
          <Submit label="Save" of={name} />
        </Form>
      </details>
    </td>
  </tr>
);

const termsText = ({ terms, currency }: PackForOperator): string =>
  terms
    .filter(({ discountPercent }) => discountPercent > 0)
    .map(
      ({ months, discountPercent, amountCents }) =>
        `${monthsOf(months)}: ${money(amountCents, currency)}, ${discountPercent}% less`,
    )
    .join(" · ");

const Packs = ({ title, packs }: { title: string; packs: readonly PackForOperator[] }) => {
  // The cheapest one on offer is taken where an order names none.
  const standard = packs.find(({ active }) => active)?.id;
  return (
    <Card title={title}>
      {packs.length === 0 ? (
        <Empty title="No plan yet" text="Nothing of this kind can be ordered. Add the first plan below." />
      ) : (
        <table>
          {packs.map((pack) => (
            <OfferRow
              offered={pack}
              form="pack"
              isDefault={pack.id === standard}
              per=" a month"
              texts={[`${packText(pack)} · ${pack.pids} processes`, termsText(pack)].filter(Boolean)}
              note="A new price applies to orders and renewals from now on; terms already paid for are unaffected. New resources apply from the next deployment or restart. Customers on a plan that is no longer on offer keep it."
            >
              <PackFields pack={pack} />
            </OfferRow>
          ))}
        </table>
      )}
    </Card>
  );
};

const CreditFields = ({ pack }: { pack?: CreditPackageForOperator }) => (
  <>
    <div class="columns">
      <NameField of={pack} />
      <Field
        name="credits"
        type="number"
        label="Credits"
        value={pack && String(pack.credits)}
        required
        min={1}
        max={1_000_000_000}
      />
      <AmountField of={pack} label="Price" />
    </div>
    <ActiveField of={pack} />
  </>
);

/** @throws AppError invalid_request */
const creditsIn = (fields: Fields) => ({
  name: fields.text("name"),
  credits: Number(fields.text("credits")),
  amountCents: centsIn(fields),
  active: fields.text("active") === "true",
});

const CreditPackages = ({ packages }: { packages: readonly CreditPackageForOperator[] }) => (
  <Card title="Credit packages">
    {packages.length === 0 ? (
      <Empty title="No package yet" text="Credits pay for the assistant. Add the first package below." />
    ) : (
      <table>
        {packages.map((one) => (
          <OfferRow
            offered={one}
            form="credits"
            texts={[`${one.credits.toLocaleString("en-US")} credits`]}
            note="It applies to new orders only."
          >
            <CreditFields pack={one} />
          </OfferRow>
        ))}
      </table>
    )}
  </Card>
);

const Kind = z.enum(["site", "database"]);

/** What customers can order: plans of sites and databases, and packages of credits. */
export const operatorPlans: Screen = {
  path,
  async show({ ctx }) {
    const [packs, packages] = await Promise.all([
      allOf((page) => call(ctx, "listAllPacks", page)),
      allOf((page) => call(ctx, "listAllCreditPackages", page)),
    ]);
    return operatorFrame(
      path,
      <div class="stack">
        <Packs title="Site plans" packs={packs.filter(({ kind }) => kind === "site")} />
        <Packs title="Database plans" packs={packs.filter(({ kind }) => kind === "database")} />
        <details class="fold" id="add-plan" open={typedInto("new-pack") !== undefined}>
          <summary>Add a plan</summary>
          <Form id="new-pack">
            <Select
              name="kind"
              label="For"
              value="site"
              options={[
                ["site", "sites"],
                ["database", "databases"],
              ]}
            />
            <PackFields />
            <Submit label="Add plan" kind="primary" />
          </Form>
        </details>
        <CreditPackages packages={packages} />
        <details class="fold" id="add-package" open={typedInto("new-credits") !== undefined}>
          <summary>Add a credit package</summary>
          <Form id="new-credits">
            <CreditFields />
            <Submit label="Add package" kind="primary" />
          </Form>
        </details>
      </div>,
    );
  },
  forms: {
    async "new-pack"({ ctx }, fields) {
      const kind = parsed(z.object({ kind: Kind }), { kind: fields.text("kind") });
      const { name } = await call(ctx, "createPack", parsed(PackCreate, { ...kind, ...packIn(fields) }));
      return { to: path, said: `The plan ${name} is added.` };
    },
    async pack({ ctx }, fields) {
      const patch = parsed(PackPatch, packIn(fields));
      const { name } = await call(ctx, "patchPack", { id: fields.text("id"), ...patch });
      return { to: path, said: `The plan ${name} is changed.` };
    },
    async "new-credits"({ ctx }, fields) {
      const { name } = await call(ctx, "createCreditPackage", parsed(CreditPackageCreate, creditsIn(fields)));
      return { to: path, said: `The credit package ${name} is added.` };
    },
    async credits({ ctx }, fields) {
      const patch = parsed(CreditPackagePatch, creditsIn(fields));
      const { name } = await call(ctx, "patchCreditPackage", { id: fields.text("id"), ...patch });
      return { to: path, said: `The credit package ${name} is changed.` };
    },
  },
};
