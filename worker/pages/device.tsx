import type { DeviceRequest } from "../objects/rpc.ts";
import { Decide, ForAccount } from "./kit/decide.tsx";
import { Layout } from "./kit/layout.tsx";
import { Callout, Heading, Time } from "./kit/parts.tsx";

type Asked = {
  userCode: string;
  request: DeviceRequest;
  /** The account that the device would act for. */
  email: string | undefined;
  takesCode: boolean;
  refusal: string | null;
};

export const DevicePage = ({ userCode, request, email, takesCode, refusal }: Asked) => (
  <Layout title="Authorize a device">
    <div class="sheet">
      <Heading title="Authorize this device?" />
      <p>Continue only if you started this yourself and your device shows this code:</p>
      <p class="code">{userCode}</p>
      <dl>
        <ForAccount email={email} />
        <dt>Client</dt>
        <dd>{request.clientName}</dd>
        <dt>Address</dt>
        <dd>{request.address}</dd>
        <dt>Requested</dt>
        <dd>
          <Time at={request.startedAt} />
        </dd>
      </dl>
      <Callout tone="warn">
        <p>
          {request.origin === "mcp"
            ? "The program can use the assistant's tools: read and change what is in this account. Anything that deletes, stops or reveals something asks you first."
            : "The device gets a permanent API key with full access to this account."}{" "}
          You can <a href="/account/keys">revoke it</a> at any time.
        </p>
      </Callout>
      <form method="post" action="/device">
        <input type="hidden" name="code" value={userCode} />
        <Decide approve="Authorize" takesCode={takesCode} refusal={refusal} />
      </form>
      <p class="soft small">Not your account? Sign out in the menu at the top, and open the link again.</p>
    </div>
  </Layout>
);

export const DeviceCodePage = ({ wrong }: { wrong: boolean }) => (
  <Layout title="Authorize a device">
    <div class="sheet">
      <Heading title="Authorize a device" below="Type the code that your device shows." />
      {wrong && (
        <p class="callout bad" role="alert">
          No device is waiting with this code. Codes expire after ten minutes: start again on the device.
        </p>
      )}
      <form method="get" action="/device">
        <label>
          Code
          <input
            name="code"
            autocomplete="off"
            autocapitalize="characters"
            spellcheck={false}
            placeholder="XXXX-XXXX"
            required
          />
        </label>
        <p class="form-end">
          <button class="primary" type="submit">
            Continue
          </button>
        </p>
      </form>
    </div>
  </Layout>
);

export const DeviceDecidedPage = ({ approved }: { approved: boolean }) => (
  <Layout title="Authorize a device">
    <div class="sheet">
      <Heading title={approved ? "The device is authorized" : "The request was denied"} />
      <p>{approved ? "You can close this page and return to your device." : "The device gets no access."}</p>
      <p class="links">
        {approved && <a href="/account/keys">Your keys and devices</a>}
        <a href="/">To the dashboard</a>
      </p>
    </div>
  </Layout>
);
