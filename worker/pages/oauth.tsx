import { Decide, ForAccount } from "./kit/decide.tsx";
import { Layout } from "./kit/layout.tsx";
import { Callout, Heading } from "./kit/parts.tsx";

type Asked = {
  clientName: string;
  /** Where the person is sent afterwards. */
  address: URL;
  action: string;
  /** The account that the program would act for. */
  email: string | undefined;
  takesCode: boolean;
  refusal: string | null;
};

export const AuthorizePage = ({ clientName, address, action, email, takesCode, refusal }: Asked) => (
  <Layout title="Allow a program">
    <div class="sheet">
      <Heading title="Allow this program?" />
      <p>It calls itself “{clientName}” (not verified) and wants to use the assistant's tools.</p>
      <dl>
        <ForAccount email={email} />
        <dt>Returns to</dt>
        <dd>
          <code>{address.host === "" ? address.protocol : address.host}</code>
        </dd>
      </dl>
      <Callout tone="warn">
        <p>
          Continue only if you started this yourself. The program can read and change what is in this account;
          anything that deletes, stops or reveals something asks you first. You can{" "}
          <a href="/account/keys">revoke it</a> at any time.
        </p>
      </Callout>
      <form method="post" action={action}>
        <Decide approve="Allow" takesCode={takesCode} refusal={refusal} />
      </form>
    </div>
  </Layout>
);

export const AuthorizedPage = ({ allowed, target }: { allowed: boolean; target: string }) => (
  <Layout title="Allow a program">
    <div class="sheet">
      <Heading title={allowed ? "The program is allowed" : "The request was denied"} />
      <p>
        <a href={target}>Back to the program</a>
      </p>
    </div>
  </Layout>
);

export const WrongRequestPage = ({ why }: { why: string }) => (
  <Layout title="Allow a program">
    <div class="sheet">
      <Heading title="The program's request cannot be answered" below="Start again in the program." />
      <p role="alert">{why}</p>
    </div>
  </Layout>
);
