/** The account that the program would act for, in a list of what it is. */
export const ForAccount = ({ email }: { email: string | undefined }) =>
  email === undefined ? null : (
    <>
      <dt>Account</dt>
      <dd>
        <strong>{email}</strong>
      </dd>
    </>
  );

type Asked = {
  approve: string;
  /** The account signs in with a second step, so approving takes one, too. */
  takesCode: boolean;
  /** Why the last answer was not accepted. */
  refusal: string | null;
};

/** A person's answer to a program that asks for a key, within a form: the fields of `Decision` in routes/approval.ts. */
export const Decide = ({ approve, takesCode, refusal }: Asked) => (
  <>
    {refusal !== null && (
      <p class="callout bad" role="alert">
        {refusal}
      </p>
    )}
    {takesCode && (
      <label>
        Code from your authenticator app
        <input
          name="secondFactor"
          autocomplete="one-time-code"
          autocapitalize="none"
          spellcheck={false}
          maxlength={100}
        />
        <span class="hint">Or a recovery code. Not needed to deny.</span>
      </label>
    )}
    <div class="decide">
      <button class="primary" type="submit" name="decision" value="approve">
        {approve}
      </button>
      <button type="submit" name="decision" value="deny">
        Deny
      </button>
    </div>
  </>
);
