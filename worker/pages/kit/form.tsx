import { tryGetContext } from "hono/context-storage";
import { createContext, useContext, type Child } from "hono/jsx";
import type { AppEnv } from "../../app-env.ts";
import type { Refused } from "../../page-state.ts";

const FormId = createContext("");
const refusedHere = (): Refused | undefined => {
  const refused = tryGetContext<AppEnv>()?.get("refused");
  return refused?.form === useContext(FormId) ? refused : undefined;
};

/**
 * A form of a screen (screens.tsx): it posts to the page's own address, and `id` names which of the screen's forms it is.
 * With a script only what changes is replaced; without one it posts as any form.
 */
export const Form = ({
  id,
  action,
  of,
  inline = false,
  isButton = false,
  plain = false,
  children,
}: {
  id: string;
  /** The screen's address, if the form stands on another. */
  action?: string;
  /** Tells apart forms of one kind on a page, such as one per row. */
  of?: string;
  inline?: boolean;
  /** It is one button, perhaps in a closed menu: why it is refused is said at the top of the page. */
  isButton?: boolean;
  /** It leads to a file or another origin, so no script sends it. */
  plain?: boolean;
  children: Child;
}) => {
  const key = of === undefined ? id : `${id}:${of}`;
  return (
    <FormId.Provider value={key}>
      <form
        method="post"
        {...(!plain && { "data-enhanced": "" })}
        id={`form-${key}`}
        class={inline ? "inline" : ""}
        {...(action !== undefined && { action })}
      >
        <input type="hidden" name="form" value={key} />
        {!isButton && <Reason />}
        {children}
      </form>
    </FormId.Provider>
  );
};

const Reason = () => {
  const refused = refusedHere();
  if (!refused || refused.reason === null) return null;
  return (
    <p class="callout bad" role="alert" tabindex={-1} data-flash data-reason>
      {refused.reason}
    </p>
  );
};

/** With a script the page is asked for with the parameter `name`, and its `Telling` of that name replaces what is told. */
export type Told = { name: string; of: (value: string) => Child };
export const Telling = ({ told, value }: { told: Told; value: string | undefined }) =>
  value === undefined ? null : (
    <span hidden id={`telling-${told.name}`}>
      {told.of(value)}
    </span>
  );

type Common = {
  name: string;
  label: string;
  hint?: Child;
  required?: boolean;
  placeholder?: string;
  maxlength?: number;
  autocomplete?: string;
  wide?: boolean;
  mono?: boolean;
  /** Sentences and names of people and companies: keyboards of phones may correct them. All else is taken letter by letter. */
  prose?: boolean;
};

const typedAs = (prose: boolean): object =>
  prose ? {} : { autocapitalize: "none", autocorrect: "off", spellcheck: false };

/** What a control says of its refusal, and the value it shows again. A password is never shown again. */
function stateOf(name: string, value: string | undefined) {
  const refused = refusedHere();
  const problem = refused?.problems[name];
  const shown = refused?.values[name] ?? value;
  return { problem, shown, id: `${useContext(FormId)}-${name}`.replaceAll(/[^\w-]/g, "-") };
}

const Around = ({
  id,
  label,
  hint,
  problem,
  wide = false,
  children,
}: {
  id: string;
  label: string;
  hint: Child | undefined;
  problem: string | undefined;
  wide: boolean | undefined;
  children: Child;
}) => (
  <div class={wide ? "field wide" : "field"}>
    <label for={id}>{label}</label>
    {children}
    {problem !== undefined && (
      <span class="problem" id={`${id}-problem`}>
        {problem}
      </span>
    )}
    {hint !== undefined && (
      <span class="hint" id={`${id}-hint`}>
        {hint}
      </span>
    )}
  </div>
);

const said = (id: string, problem: string | undefined, hint: Child | undefined, told?: Told): object => {
  const by = [
    problem !== undefined && `${id}-problem`,
    told && `${id}-told`,
    hint !== undefined && `${id}-hint`,
  ].filter(Boolean);
  return {
    ...(problem !== undefined && { "aria-invalid": "true" }),
    ...(by.length > 0 && { "aria-describedby": by.join(" ") }),
  };
};

export const Field = ({
  label,
  hint: usualHint,
  value,
  type = "text",
  wide,
  mono = false,
  prose = false,
  // A browser that goes back to a form does not restore what says "off".
  autocomplete = type === "number" ? undefined : "off",
  told,
  ...input
}: Common & {
  type?: "text" | "email" | "password" | "number" | "url" | "search" | "datetime-local";
  value?: string | undefined;
  min?: number;
  max?: number;
  step?: number;
  minlength?: number;
  pattern?: string;
  list?: string;
  /** What the value means: told beside the field, and again while it is typed. */
  told?: Told | undefined;
}) => {
  const { id, problem, shown } = stateOf(input.name, value);
  // The usual hint may say that an empty field changes nothing, and what was typed into this one is gone.
  const hint = type === "password" && shown ? "Type it again: it is never shown." : usualHint;
  return (
    <Around id={id} label={label} hint={hint} problem={problem} wide={wide}>
      <input
        {...input}
        autocomplete={autocomplete}
        {...typedAs(prose)}
        id={id}
        type={type}
        class={mono ? "mono" : ""}
        value={type === "password" ? "" : (shown ?? "")}
        {...(told && { "data-tells": told.name })}
        {...said(id, problem, hint, told)}
      />
      {told && (
        <span class="told" id={`${id}-told`} aria-live="polite" data-told={told.name}>
          {told.of(shown ?? "")}
        </span>
      )}
    </Around>
  );
};

export const TextArea = ({
  label,
  hint,
  value,
  rows = 4,
  wide,
  prose = false,
  ...input
}: Omit<Common, "mono"> & { value?: string | undefined; rows?: number }) => {
  const { id, problem, shown } = stateOf(input.name, value);
  return (
    <Around id={id} label={label} hint={hint} problem={problem} wide={wide}>
      <textarea {...input} {...typedAs(prose)} id={id} rows={rows} {...said(id, problem, hint)}>
        {/* Browsers leave out a line break at the beginning. */}
        {/^[\r\n]/.test(shown ?? "") && "\n"}
        {shown ?? ""}
      </textarea>
    </Around>
  );
};

export const Select = ({
  label,
  hint,
  value,
  options,
  wide,
  ...input
}: Pick<Common, "name" | "label" | "hint" | "required" | "wide"> & {
  value?: string | undefined;
  options: readonly (readonly [value: string, label: string])[];
}) => {
  const { id, problem, shown } = stateOf(input.name, value);
  return (
    <Around id={id} label={label} hint={hint} problem={problem} wide={wide}>
      <select {...input} id={id} {...said(id, problem, hint)}>
        {options.map(([one, text]) => (
          <option value={one} selected={one === (shown ?? "")}>
            {text}
          </option>
        ))}
      </select>
    </Around>
  );
};

/** One choice of a form that filters a list. */
export const FilterSelect = ({
  name,
  label,
  any,
  value,
  options,
}: {
  name: string;
  label: string;
  /** What nothing chosen is called. */
  any: string;
  value: string | undefined;
  options: readonly (readonly [value: string, label: string])[];
}) => (
  <label>
    <span class="hidden-text">{label}</span>
    <select name={name}>
      <option value="">{any}</option>
      {options.map(([one, text]) => (
        <option value={one} selected={one === value}>
          {text}
        </option>
      ))}
    </select>
  </label>
);

/** A box that is sent as "true" if it is ticked, and not at all if it is not. */
export const Check = ({
  name,
  label,
  value = "true",
  checked = false,
}: {
  name: string;
  label: Child;
  value?: string;
  checked?: boolean;
}) => {
  const refused = refusedHere();
  const isChecked = refused === undefined ? checked : refused.values[name] === value;
  return (
    <label class="check">
      <input type="checkbox" name={name} value={value} checked={isChecked} /> <span>{label}</span>
    </label>
  );
};

/** What was typed into a form that is shown again; undefined if it is shown for the first time. */
export const typedInto = (form: string): Readonly<Record<string, string>> | undefined => {
  const refused = tryGetContext<AppEnv>()?.get("refused");
  return refused?.form === form ? refused.values : undefined;
};

/** `of` tells equal buttons apart for screen readers; the accessible name begins with what is seen. */
export const Button = ({
  label,
  of,
  kind = "",
  name,
  value,
}: {
  label: string;
  of?: string;
  kind?: "" | "primary" | "ghost" | "danger" | "danger primary";
  name?: string;
  value?: string;
}) => (
  <button
    class={kind}
    type="submit"
    {...(name !== undefined && { name, value: value ?? "" })}
    {...(of !== undefined && { "aria-label": `${label}: ${of}` })}
  >
    {label}
  </button>
);

/** The only button at the end of a form. */
export const Submit = (button: Parameters<typeof Button>[0]) => (
  <p class="form-end">
    <Button {...button} />
  </p>
);

/** A form with one button. */
export const Act = ({
  id,
  of,
  action,
  label,
  about,
  kind,
  plain = false,
  values = {},
}: {
  id: string;
  of?: string;
  action?: string;
  label: string;
  plain?: boolean;
  /** What the button acts on, for screen readers. */
  about?: string;
  kind?: Parameters<typeof Button>[0]["kind"];
  values?: Readonly<Record<string, string>>;
}) => (
  <Form
    id={id}
    inline
    isButton
    plain={plain}
    {...(of !== undefined && { of })}
    {...(action !== undefined && { action })}
  >
    {Object.entries(values).map(([name, value]) => (
      <input type="hidden" name={name} value={value} />
    ))}
    <Button label={label} {...(about !== undefined && { of: about })} {...(kind !== undefined && { kind })} />
  </Form>
);

/** A destructive form behind a fold: the resource's name must be typed. The screen's action compares it once more. */
export const ConfirmByName = ({
  id,
  of,
  summary,
  name,
  label,
  fields,
  children,
}: {
  id: string;
  of?: string;
  /** Further fields of the form. */
  fields?: Child;
  /** The fold's title. */
  summary: string;
  name: string;
  label: string;
  /** What will be lost. */
  children: Child;
}) => (
  <details class="fold" open={typedInto(of === undefined ? id : `${id}:${of}`) !== undefined}>
    <summary class="bad">{summary}</summary>
    {children}
    <Form id={id} {...(of !== undefined && { of })}>
      {fields}
      <Field name="confirm" label={`Type ${name} to confirm`} required />
      <Submit label={label} kind="danger primary" />
    </Form>
  </details>
);

/** Choices of which one is taken, as cards: a title, and what it means. */
export const Choices = ({
  name,
  legend,
  isLegendHidden = false,
  value,
  options,
}: {
  name: string;
  legend: string;
  /** A heading above says it already. */
  isLegendHidden?: boolean;
  value: string | undefined;
  options: readonly { value: string; title: string; end?: Child; text?: Child }[];
}) => {
  const { problem, shown, id } = stateOf(name, value);
  return (
    <fieldset class="option-cards" {...said(id, problem, undefined)}>
      <legend class={isLegendHidden ? "hidden-text" : ""}>{legend}</legend>
      <div>
        {options.map((option) => (
          <label>
            <input
              type="radio"
              name={name}
              value={option.value}
              required
              checked={option.value === (shown ?? "")}
            />
            <span>
              <span class="row spread">
                <strong>{option.title}</strong> {option.end}
              </span>
              {option.text !== undefined && <span class="hint">{option.text}</span>}
            </span>
          </label>
        ))}
      </div>
      {problem !== undefined && (
        <span class="problem" id={`${id}-problem`}>
          {problem}
        </span>
      )}
    </fieldset>
  );
};
