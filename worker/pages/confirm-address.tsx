import type { AddressLink } from "../services/accounts/address-links.ts";
import { Layout } from "./kit/layout.tsx";
import { Callout, Heading } from "./kit/parts.tsx";

type Asked = Pick<AddressLink, "email" | "step"> & { token: string };

export const ConfirmAddressPage = ({ email, step, token }: Asked) => (
  <Layout title="Confirm the address">
    <div class="sheet">
      <Heading
        title={step === "confirm" ? "Confirm your email address?" : "Change your account's email address?"}
      />
      <p>
        {step === "confirm" ? "The address of the account" : "The new address"}: <strong>{email}</strong>
      </p>
      {step === "agree" && <p>A link to the new address follows, which must be opened too.</p>}
      <Callout tone="warn">
        <p>Go on only if you asked for it yourself.</p>
      </Callout>
      <form method="post" action="/confirm-address">
        <input type="hidden" name="token" value={token} />
        <p class="form-end">
          <button class="primary" type="submit">
            {step === "confirm" ? "Confirm" : "Change the address"}
          </button>
        </p>
      </form>
    </div>
  </Layout>
);

export const EndedLinkPage = () => (
  <Layout title="The link has ended">
    <div class="sheet">
      <Heading title="The link has ended" />
      <p>It has expired, was used before or is incomplete, so it confirms no address. Request a new one.</p>
      <p class="links">
        <a href="/">Sign in, or go to the dashboard</a>
      </p>
    </div>
  </Layout>
);

export const TakenAddressPage = ({ email }: { email: string }) => (
  <Layout title="The address has an account">
    <div class="sheet">
      <Heading title="The address has an account" />
      <p>
        Another account has been created with the address <strong>{email}</strong> since you requested the
        change. Your account keeps the address that it has. Delete the other account or change its address,
        then request the change again.
      </p>
      <p class="links">
        <a href="/account">Go to your account</a>
      </p>
    </div>
  </Layout>
);

export const OtherAccountPage = () => (
  <Layout title="Another account's link">
    <div class="sheet">
      <Heading title="Another account's link" />
      <p>
        This link changes the address of another account than the one that you are signed in to. Sign out in
        the menu at the top, sign in to that account, and open the link again.
      </p>
    </div>
  </Layout>
);
