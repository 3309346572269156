import { Field } from "../kit/form.tsx";

/** For changes that take a code of the second step, where the account has one. */
export const CodeField = () => (
  <Field
    name="code"
    label="Code"
    required
    maxlength={100}
    autocomplete="one-time-code"
    mono
    hint="The six digits from your authenticator app, or a recovery code."
  />
);
